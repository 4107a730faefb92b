{{/* Whether `helm test` can send requests: it needs what any caller needs. */}}

{{- define "zurelay.hasTest" -}}
{{- $require := include "zurelay.require" . -}}
{{- $isKnown := and .Values.mesh.istio.enabled (has $require (list "workload" "either")) -}}
{{- $isIn := or .Values.test.existingSecret.name $isKnown (eq $require "none") -}}
{{- if and .Values.test.enabled (include "zurelay.isGateway" .) $isIn (not .Values.listen.tls.existingSecret.name) }}true{{ end -}}
{{- end -}}

{{- define "zurelay.testModel" -}}
{{- $first := keys .Values.config.models | sortAlpha | first -}}
{{- .Values.test.model | default (ternary "zurelay-auto" $first (not (empty .Values.config.auto))) -}}
{{- end -}}
