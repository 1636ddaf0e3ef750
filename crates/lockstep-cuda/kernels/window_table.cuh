// The windows of a convolution, for products that read them from the images where they lie: tables in shared memory of where
// windows begin, and what in a window is how far from there.
#pragma once
#include "tiles.cuh"

// Where no pixel is, wherever a window is moved to from there.
constexpr int NOWHERE = -0x40000000;

// An image that comes in.
struct Image {
    u32 height;
    u32 width;
    Divisor channels;
};

// The windows over it, and the image that comes out.
struct Windows {
    u32 kernel[2];
    u32 stride[2];
    u32 padding[2];
    // Numbers of a row of the kernel's matrix: of the kernel's width, and of all of it.
    Divisor kernel_width;
    u32 area;
    // Pixels of a line and of an image of the output, and its channels.
    Divisor width;
    Divisor pixels;
    u32 channels;
};

// Where the windows of some pixels of the output begin, from a first image on.
struct WindowTable {
    int row[TILE_THREADS];
    int column[TILE_THREADS];
    // Where the window's first number lies.
    int at[TILE_THREADS];
};

// Notes where the window of a pixel begins; `image` is how many images it is after the first.
DEVICE void note(WindowTable &table, u32 place, const Image &image, const Windows &w, u32 number, u32 pixel) {
    const int row = (int)(pixel / w.width * w.stride[0]) - (int)w.padding[0];
    const int column = (int)(pixel % w.width * w.stride[1]) - (int)w.padding[1];
    table.row[place] = row;
    table.column[place] = column;
    table.at[place] = (((int)(number * image.height) + row) * (int)image.width + column) * (int)image.channels.by;
}

// A number of a window.
struct WindowPlace {
    u32 row;
    u32 column;
    // How far it is from the window's first number.
    u32 offset;
};

DEVICE WindowPlace window_place(const Image &image, const Windows &w, u32 i) {
    const u32 place = i / image.channels, row = place / w.kernel_width, column = place % w.kernel_width;
    return {row, column, (row * image.width + column) * image.channels.by + i % image.channels};
}

// Where a number of the window at a place of the table lies, and whether the image has it.
DEVICE const float *find(const WindowTable &table, u32 place, const float *images, const Image &image,
                         const WindowPlace &number, bool &is_inside) {
    is_inside = ((u32)(table.row[place] + (int)number.row) < image.height) &
                ((u32)(table.column[place] + (int)number.column) < image.width);
    return images + (table.at[place] + (int)number.offset);
}
