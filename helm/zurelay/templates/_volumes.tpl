{{/* The pod's volumes. Whole directories all: a file that is mounted alone never changes. */}}

{{- define "zurelay.volumes" -}}
- name: config
  configMap: {name: {{ include "zurelay.fullname" . }}}
{{- with .Values.keys.existingSecret }}
{{- if .name }}
- name: keys
  secret: {secretName: {{ .name }}, items: [{key: {{ .key }}, path: {{ .key }}}]}
{{- end }}
{{- end }}
{{- $redis := .Values.store.redis.existingSecret }}
{{- if $redis.name }}
- name: redis
  secret: {secretName: {{ $redis.name }}, items: [{key: {{ $redis.key }}, path: {{ $redis.key }}}]}
{{- else if .Values.store.sqlite.existingClaim }}
- name: data
  persistentVolumeClaim: {claimName: {{ .Values.store.sqlite.existingClaim }}}
{{- else }}
- name: data
  emptyDir: {sizeLimit: {{ .Values.store.sqlite.sizeLimit }}}
{{- end }}
{{- if include "zurelay.isGateway" . }}
# The sockets between the two, and the files that Envoy watches.
- name: run
  emptyDir: {sizeLimit: 64Mi}
{{- range $name, $keys := include "zurelay.credentials" . | fromJson }}
- name: {{ include "zurelay.credentialVolume" $name }}
  secret:
    secretName: {{ $name }}
    items:
      {{- range $keys }}
      - {key: {{ . }}, path: {{ . }}}
      {{- end }}
{{- end }}
{{- with .Values.listen.tls.existingSecret }}
{{- if .name }}
- name: tls
  secret: {secretName: {{ .name }}}
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
