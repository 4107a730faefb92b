{{/* What pods say to the mesh. */}}

{{- define "zurelay.meshLabels" -}}
{{- if .Values.mesh.istio.enabled }}
sidecar.istio.io/inject: "true"
{{- end }}
{{- end -}}

{{- define "zurelay.meshAnnotations" -}}
{{- if .Values.mesh.istio.enabled }}
# Probes, hooks and Prometheus come from outside the mesh.
traffic.sidecar.istio.io/excludeInboundPorts: "{{ int .Values.status.port }},{{ int .Values.status.sidecarPort }}"
# The proxy is there before Envoy is, and until no stream is open any more: by itself it would go after 5 s.
proxy.istio.io/config: |
  holdApplicationUntilProxyStarts: true
  proxyMetadata: {EXIT_ON_ZERO_ACTIVE_CONNECTIONS: "true"}
{{- end }}
{{- end -}}
