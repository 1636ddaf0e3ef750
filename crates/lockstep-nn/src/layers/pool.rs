//! The settings of pools, which differ in what they take of a window: of images, and of sequences, which are images of
//! one line.

/// Declares the settings of a pool of images and of the same pool of sequences. Both are built as `$layer`; in a graph
/// they are the node `$operator` with these attributes, and in PyTorch the module `$module`.
macro_rules! pools {
    (
        $(#[doc = $doc:literal])* $images:ident,
        $(#[doc = $line_doc:literal])* $sequences:ident,
        $layer:ident, $operator:literal $attributes:expr, $module:literal
    ) => {
        $(#[doc = $doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct $images {
            /// Pixels of a window.
            pub kernel: [usize; 2],
            /// Pixels from one window to the next.
            pub stride: [usize; 2],
            /// Margin around the image, on each side.
            pub padding: [usize; 2],
        }

        impl $images {
            fn window(&self) -> Window {
                Window { kernel: self.kernel, stride: self.stride, padding: self.padding }
            }
        }

        impl LayerKind for $images {
            fn build(&self, site: &mut Site<'_>) -> Result<(), NnError> {
                let (input, window) = (site.chain.output(), self.window());
                let output = window.of_pool(site.name, input)?;
                let layer = $layer::new(input, window, site.model.rows);
                site.chain.push(Box::new(layer), output);
                Ok(())
            }

            fn write_graph(&self, flow: Flow, graph: &mut LayerGraph<'_>) -> Flow {
                let flow = graph.as_image(flow);
                let mut settings = window_attributes(self.window());
                settings.extend($attributes);
                let value = graph.node($operator, &[&flow.value], &settings);
                Flow { value, dims: graph.output, ..flow }
            }

            fn torch_module(&self) -> String {
                format!(concat!($module, "({})"), self.window().in_python())
            }

            fn sample() -> (Dims, Self) {
                let layer = Self { kernel: [3, 2], stride: [2, 1], padding: [1, 0] };
                (Dims::image(5, 4, 3), layer)
            }
        }

        $(#[doc = $line_doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct $sequences {
            /// Numbers of a window.
            pub kernel: usize,
            /// Numbers from one window to the next.
            pub stride: usize,
        }

        impl $sequences {
            fn of_images(&self) -> $images {
                $images { kernel: [1, self.kernel], stride: [1, self.stride], padding: [0, 0] }
            }
        }

        impl LayerKind for $sequences {
            fn build(&self, site: &mut Site<'_>) -> Result<(), NnError> {
                self.of_images().build(site)
            }

            fn write_graph(&self, flow: Flow, graph: &mut LayerGraph<'_>) -> Flow {
                self.of_images().write_graph(flow, graph)
            }

            fn torch_module(&self) -> String {
                self.of_images().torch_module()
            }

            fn sample() -> (Dims, Self) {
                (Dims::image(1, 9, 2), Self { kernel: 3, stride: 2 })
            }
        }
    };
}
pub(crate) use pools;
