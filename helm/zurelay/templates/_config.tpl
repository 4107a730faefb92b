{{/* zurelay.yaml: the values' `config`, and what the chart decides. */}}

{{- define "zurelay.config" -}}
{{- $tls := .Values.listen.tls.existingSecret -}}
{{- $host := .Values.listen.host -}}
{{- $config := deepCopy .Values.config -}}
{{- range $key, $value := .Values.config }}{{ if empty $value }}{{ $_ := unset $config $key }}{{ end }}{{ end -}}
{{- $listen := dict "host" $host "port" (int .Values.listen.port) -}}
{{- if and $tls.name (ne (include "zurelay.identityMode" .) "mtls") -}}
{{- $_ := set $listen "tls" (dict "cert" (printf "/etc/zurelay/tls/%s" $tls.certKey) "key" (printf "/etc/zurelay/tls/%s" $tls.keyKey)) -}}
{{- end -}}
{{- $_ := set $config "listen" $listen -}}
{{- $_ := set $config "status" (dict "host" $host "port" (int .Values.status.port)) -}}
{{- $_ := set $config "workers" (include "zurelay.workers" . | int) -}}
{{- $_ := set $config "store" (include "zurelay.storeConfig" . | fromJson) -}}
{{- $auth := $config.auth | default dict -}}
{{- if .Values.keys.existingSecret.name -}}
{{- $_ := set $auth "keys" (printf "/etc/zurelay/keys/%s" .Values.keys.existingSecret.key) -}}
{{- end -}}
{{- $_ := set $config "auth" $auth -}}
{{- with include "zurelay.identityConfig" . | fromJson }}{{ $_ := set $config "identity" . }}{{ end -}}
{{- range $name, $provider := $config.providers -}}
{{- if kindIs "map" $provider.api_key -}}
{{- with $provider.api_key.existingSecret -}}
{{- $_ := set $provider "api_key" (dict "file" (printf "/etc/zurelay/credentials/%s/%s" .name .key)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toYaml $config -}}
{{- end -}}

{{- define "zurelay.storeConfig" -}}
{{- $redis := .Values.store.redis.existingSecret -}}
{{- $store := dict "on_failure" .Values.store.onFailure -}}
{{- if $redis.name -}}
{{- $_ := set $store "redis" (dict "file" (printf "/etc/zurelay/redis/%s" $redis.key)) -}}
{{- else -}}
{{- $_ := set $store "sqlite" "/var/lib/zurelay/zurelay.db" -}}
{{- end -}}
{{- toJson $store -}}
{{- end -}}

{{- define "zurelay.identityConfig" -}}
{{- $tls := .Values.listen.tls.existingSecret -}}
{{- $identity := deepCopy (.Values.config.identity | default dict) -}}
{{- if .Values.mesh.istio.enabled -}}
{{- /* Istio's proxy hands requests on from these addresses of the pod's own loopback, and from nowhere else. */ -}}
{{- $identity = merge $identity (dict "mode" "forwarded" "trusted" (list "127.0.0.6/32" "::6/128") "trust_domain" .Values.mesh.istio.trustDomain) -}}
{{- else if eq (include "zurelay.identityMode" .) "mtls" -}}
{{- range $key, $file := dict "ca" $tls.caKey "cert" $tls.certKey "key" $tls.keyKey -}}
{{- $_ := set $identity $key (printf "/etc/zurelay/tls/%s" $file) -}}
{{- end -}}
{{- end -}}
{{- toJson $identity -}}
{{- end -}}

{{- /* What takes effect at a start alone: a change of it replaces the pods, a change of anything else doesn't. */ -}}
{{- define "zurelay.restartChecksum" -}}
{{- dict "workers" (include "zurelay.workers" .) "telemetry" .Values.config.telemetry | toJson | sha256sum -}}
{{- end -}}
