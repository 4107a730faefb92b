{{/* The pod's volumes. Whole directories all: a file that is mounted alone never changes. */}}

{{- define "zurelay.volumes" -}}
- name: config
  configMap: {name: {{ include "zurelay.fullname" . | quote }}}
{{- with .Values.keys.existingSecret }}
{{- if .name }}
- name: keys
  secret: {secretName: {{ .name | quote }}, items: [{key: {{ .key | quote }}, path: {{ .key | quote }}}]}
{{- end }}
{{- end }}
{{- $redis := .Values.store.redis.existingSecret }}
{{- if $redis.name }}
- name: redis
  secret: {secretName: {{ $redis.name | quote }}, items: [{key: {{ $redis.key | quote }}, path: {{ $redis.key | quote }}}]}
{{- else if .Values.store.sqlite.existingClaim }}
- name: data
  persistentVolumeClaim: {claimName: {{ .Values.store.sqlite.existingClaim | quote }}}
{{- else }}
- name: data
  emptyDir: {sizeLimit: {{ .Values.store.sqlite.sizeLimit | quote }}}
{{- end }}
{{- if include "zurelay.isGateway" . }}
# The sockets between the two, and the files that Envoy watches.
- name: run
  emptyDir: {sizeLimit: 64Mi}
{{- range $name, $keys := include "zurelay.credentials" . | fromJson }}
- name: {{ include "zurelay.credentialVolume" $name }}
  secret:
    secretName: {{ $name | quote }}
    items:
      {{- range $keys }}
      - {key: {{ . | quote }}, path: {{ . | quote }}}
      {{- end }}
{{- end }}
{{- with .Values.listen.tls.existingSecret }}
{{- if .name }}
- name: tls
  secret: {secretName: {{ .name | quote }}}
{{- end }}
{{- end }}
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- /* A volume's name takes no dots, a Secret's does; takes the Secret's name. */ -}}
{{- define "zurelay.credentialVolume" -}}
credentials-{{ sha256sum . | trunc 8 }}
{{- end -}}
