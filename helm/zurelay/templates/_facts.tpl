{{/* What follows from the values. A definition gives text; lists and mappings are JSON, for fromJson. */}}

{{- define "zurelay.isGateway" -}}
{{- if eq .Values.mode "gateway" }}true{{ end -}}
{{- end -}}

{{- /* Whether an init container may keep running: beta, and on, from 1.29. */ -}}
{{- define "zurelay.isNative" -}}
{{- $new := semverCompare ">=1.29.0-0" .Capabilities.KubeVersion.Version -}}
{{- if or (eq .Values.nativeSidecar "always") (and (eq .Values.nativeSidecar "auto") $new) }}true{{ end -}}
{{- end -}}

{{- /* The most and the least pods that there may be at once. */ -}}
{{- define "zurelay.mostPods" -}}
{{- ternary .Values.autoscaling.maxReplicas .Values.replicaCount .Values.autoscaling.enabled | int -}}
{{- end -}}
{{- define "zurelay.leastPods" -}}
{{- ternary .Values.autoscaling.minReplicas .Values.replicaCount .Values.autoscaling.enabled | int -}}
{{- end -}}

{{- /* Whole cores of a container: its CPU limit, else its request, else one; takes its resources. */ -}}
{{- define "zurelay.cores" -}}
{{- $resources := . | default dict -}}
{{- $request := dig "requests" "cpu" "1" $resources -}}
{{- $cpu := dig "limits" "cpu" $request $resources | toString -}}
{{- if hasSuffix "m" $cpu -}}
{{- divf (trimSuffix "m" $cpu | float64) 1000.0 | ceil | int | max 1 -}}
{{- else -}}
{{- float64 $cpu | ceil | int | max 1 -}}
{{- end -}}
{{- end -}}

{{- define "zurelay.workers" -}}
{{- if eq (toString .Values.workers) "auto" }}{{ include "zurelay.cores" .Values.sidecar.resources }}{{ else }}{{ int .Values.workers }}{{ end -}}
{{- end -}}

{{- define "zurelay.concurrency" -}}
{{- $threads := .Values.envoy.concurrency -}}
{{- if eq (toString $threads) "auto" }}{{ include "zurelay.cores" .Values.envoy.resources }}{{ else }}{{ int $threads }}{{ end -}}
{{- end -}}

{{- /* HOST:PORT to listen on; takes [context, port]. */ -}}
{{- define "zurelay.address" -}}
{{- $host := (index . 0).Values.listen.host -}}
{{- if contains ":" $host }}[{{ $host }}]{{ else }}{{ $host }}{{ end }}:{{ int (index . 1) -}}
{{- end -}}

{{- define "zurelay.servicePort" -}}
{{- .Values.service.port | default (ternary 443 80 (ne .Values.listen.tls.existingSecret.name "")) | int -}}
{{- end -}}

{{- define "zurelay.portName" -}}
{{- ternary "https" "http" (ne .Values.listen.tls.existingSecret.name "") -}}
{{- end -}}

{{- /* Seconds of timeouts.total, which is 570 s where nothing is said. */ -}}
{{- define "zurelay.totalSeconds" -}}
{{- $sum := 0.0 -}}
{{- range regexFindAll "[0-9.]+(ms|s|m|h)" (dig "timeouts" "total" "570s" .Values.config | toString) -1 -}}
{{- $number := regexFind "^[0-9.]+" . | float64 -}}
{{- $sum = addf $sum (mulf $number (get (dict "ms" 0.001 "s" 1.0 "m" 60.0 "h" 3600.0) (regexFind "[a-z]+$" .))) -}}
{{- end -}}
{{- ceil $sum | int -}}
{{- end -}}

{{- define "zurelay.require" -}}
{{- dig "auth" "require" "key" .Values.config -}}
{{- end -}}

{{- define "zurelay.identityMode" -}}
{{- dig "identity" "mode" (ternary "forwarded" "none" .Values.mesh.istio.enabled) .Values.config -}}
{{- end -}}

{{- /* Whether callers' limits are counted. The file of the keys is in a Secret that the chart can't read. */ -}}
{{- define "zurelay.hasLimits" -}}
{{- $keys := and .Values.keys.existingSecret.name .Values.keys.limits (has (include "zurelay.require" .) (list "key" "either")) -}}
{{- range .Values.config.policies }}{{ if .limits }}{{ $keys = true }}{{ end }}{{ end -}}
{{- if $keys }}true{{ end -}}
{{- end -}}

{{- /* Where a URL leads; takes the URL, gives {scheme, host, port, kind}. Kind is loopback, cluster, ip or external. */ -}}
{{- define "zurelay.place" -}}
{{- $scheme := regexFind "^[a-z]+" . -}}
{{- $authority := regexReplaceAll "^[a-z]+://([^/?#]*).*$" . "${1}" -}}
{{- $port := regexFind ":[0-9]+$" $authority | trimPrefix ":" | default (ternary "443" "80" (eq $scheme "https")) -}}
{{- $host := regexReplaceAll ":[0-9]+$" $authority "" | trimPrefix "[" | trimSuffix "]" | lower -}}
{{- $kind := "external" -}}
{{- if or (eq $host "localhost") (hasPrefix "127." $host) (eq $host "::1") -}}
{{- $kind = "loopback" -}}
{{- else if or (regexMatch "^[0-9.]+$" $host) (contains ":" $host) -}}
{{- $kind = "ip" -}}
{{- else if or (not (contains "." $host)) (regexMatch "[.]svc([.]|$)" $host) (and (eq $scheme "http") (regexMatch "^[^.]+[.][^.]+$" $host)) -}}
{{- /* NAME.NAMESPACE may be a domain too: without TLS it is taken for a Service. */ -}}
{{- $kind = "cluster" -}}
{{- end -}}
{{- dict "scheme" $scheme "host" $host "port" (int $port) "kind" $kind | toJson -}}
{{- end -}}

{{- /* The port of an OTLP collector: 4317 where its URL says none, as the product has it; takes the URL. */ -}}
{{- define "zurelay.otlpPort" -}}
{{- regexReplaceAll "^[a-z]+://([^/?#]*).*$" . "${1}" | regexFind ":[0-9]+$" | trimPrefix ":" | default "4317" -}}
{{- end -}}

{{- /* The places of all providers, each once, as a JSON list. */ -}}
{{- define "zurelay.providers" -}}
{{- $places := list -}}
{{- range $name, $provider := .Values.config.providers -}}
{{- $places = append $places (include "zurelay.place" (toString $provider.base_url)) -}}
{{- end -}}
[{{ $places | uniq | sortAlpha | join "," }}]
{{- end -}}

{{- /* What is left out of a network of providers, by its family; takes [context, CIDR], gives a JSON list. */ -}}
{{- define "zurelay.exceptions" -}}
{{- $found := list -}}
{{- $cidr := index . 1 -}}
{{- range (index . 0).Values.networkPolicy.egress.exceptCIDRs -}}
{{- if or (and (eq $cidr "0.0.0.0/0") (not (contains ":" .))) (and (eq $cidr "::/0") (contains ":" .)) -}}
{{- $found = append $found . -}}
{{- end -}}
{{- end -}}
{{- toJson $found -}}
{{- end -}}

{{- /* The Secrets of providers' credentials with the keys that are used, as a JSON mapping. */ -}}
{{- define "zurelay.credentials" -}}
{{- $secrets := dict -}}
{{- range $name, $provider := .Values.config.providers -}}
{{- if kindIs "map" $provider.api_key -}}
{{- with $provider.api_key.existingSecret -}}
{{- $_ := set $secrets .name (append (get $secrets .name | default list) .key | uniq | sortAlpha) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toJson $secrets -}}
{{- end -}}
