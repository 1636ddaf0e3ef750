{{- define "lockstep.name" -}}
{{- if contains "lockstep" .Release.Name -}}
{{- .Release.Name | trunc 53 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-lockstep" .Release.Name | trunc 53 | trimSuffix "-" -}}
{{- end -}}
{{- end }}

{{- define "lockstep.selector" -}}
app.kubernetes.io/name: lockstep-server
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "lockstep.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{ include "lockstep.selector" . }}
{{- end }}

{{- define "lockstep.account" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "lockstep.name" .) -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end }}

{{- define "lockstep.secret" -}}
{{- .Values.existingSecret | default (printf "%s-tokens" (include "lockstep.name" .)) -}}
{{- end }}

{{- define "lockstep.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) -}}
{{- end -}}
{{- end }}
