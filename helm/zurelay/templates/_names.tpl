{{/* Names and labels, in quotes: a namespace may be called 123, a release true, a Secret 1e3. What selects pods never changes: an upgrade or a rollback couldn't be applied. */}}

{{- define "zurelay.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- /* At most 52 letters: the longest that is added has 11. */ -}}
{{- define "zurelay.fullname" -}}
{{- $name := .Values.nameOverride | default .Chart.Name -}}
{{- $whole := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{- .Values.fullnameOverride | default $whole | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{- define "zurelay.serviceAccountName" -}}
{{- .Values.serviceAccount.name | default (ternary (include "zurelay.fullname" .) "default" .Values.serviceAccount.create) -}}
{{- end -}}

{{- define "zurelay.selectorLabels" -}}
app.kubernetes.io/name: {{ include "zurelay.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/component: gateway
{{- end -}}

{{- /* The labels of an object; takes [context, component]. */ -}}
{{- define "zurelay.labels" -}}
{{- $root := index . 0 -}}
{{- $ours := dict
  "helm.sh/chart" (printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-")
  "app.kubernetes.io/name" (include "zurelay.name" $root)
  "app.kubernetes.io/instance" $root.Release.Name
  "app.kubernetes.io/component" (index . 1)
  "app.kubernetes.io/version" $root.Chart.AppVersion
  "app.kubernetes.io/managed-by" $root.Release.Service -}}
{{- toYaml (merge $ours $root.Values.commonLabels) -}}
{{- end -}}

{{- /* The metadata of an object; takes [context, name, component, annotations]. */ -}}
{{- define "zurelay.metadata" -}}
{{- $root := index . 0 -}}
{{- /* Every object comes by here, so that nothing is rendered of values that can't be used. */ -}}
{{- include "zurelay.check" $root -}}
name: {{ index . 1 | quote }}
namespace: {{ $root.Release.Namespace | quote }}
labels:
  {{- include "zurelay.labels" (list $root (index . 2)) | nindent 2 }}
{{- with merge (dict) (index . 3) $root.Values.commonAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- /* An image by digest or tag; takes [image, tag where it has none]. */ -}}
{{- define "zurelay.image" -}}
{{- $image := index . 0 -}}
{{- if $image.digest -}}
{{ $image.repository }}@{{ $image.digest }}
{{- else -}}
{{ $image.repository }}:{{ $image.tag | default (index . 1) }}
{{- end -}}
{{- end -}}
