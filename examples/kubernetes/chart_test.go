package kubernetes

import (
	"flag"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	gateway "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write testdata/*.golden.yaml anew")

const chartFolder = "boardd"

// read returns the values of a file of testdata.
func read(t *testing.T, name string) chartutil.Values {
	t.Helper()
	values, err := chartutil.ReadValuesFile(filepath.Join("testdata", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return values
}

// render renders the chart, as `helm install jobs --namespace work` would.
func render(t *testing.T, values chartutil.Values) (string, error) {
	t.Helper()
	chart, err := loader.Load(chartFolder)
	if err != nil {
		t.Fatal(err)
	}
	release := chartutil.ReleaseOptions{Name: "jobs", Namespace: "work", IsInstall: true, Revision: 1}
	top, err := chartutil.ToRenderValues(chart, values, release, chartutil.DefaultCapabilities)
	if err != nil {
		return "", err
	}
	files, err := (engine.Engine{Strict: true}).Render(chart, top)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if strings.HasSuffix(name, ".yaml") && strings.TrimSpace(files[name]) != "" {
			text.WriteString("---\n# " + path.Base(name) + "\n" + strings.TrimSpace(files[name]) + "\n")
		}
	}
	return text.String(), nil
}

var cases = map[string][]string{ // the kinds of what is made
	"embedded": {"ConfigMap", "Ingress", "NetworkPolicy", "Service", "Service", "StatefulSet"},
	"redis":    {"ConfigMap", "Deployment", "Deployment", "HTTPRoute", "NetworkPolicy", "PodDisruptionBudget", "ScaledObject", "Service", "ServiceMonitor", "TriggerAuthentication"},
	"postgres": {"ConfigMap", "NetworkPolicy", "PodDisruptionBudget", "Service", "Service", "ServiceMonitor", "StatefulSet"},
}

// TestRendered compares what the chart makes of each file of values with what is kept, and
// has the types of Kubernetes and of the others read it.
func TestRendered(t *testing.T) {
	t.Parallel()
	for name, kinds := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := render(t, read(t, name))
			if err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", name+".golden.yaml")
			if *update {
				if err := os.WriteFile(golden, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if text != string(want) {
				t.Errorf("%s is not what the chart makes; go test -update writes it anew", golden)
			}
			if got := decode(t, text); !slices.Equal(got, kinds) {
				t.Errorf("got %v, want %v", got, kinds)
			}
		})
	}
}

// decode reads each document as what it says it is, without a field that is not known or is
// given twice, and returns the sorted kinds.
func decode(t *testing.T, text string) (kinds []string) {
	t.Helper()
	for document := range strings.SplitSeq(text, "\n---\n") {
		var of meta.TypeMeta
		if err := yaml.Unmarshal([]byte(document), &of); err != nil {
			t.Fatalf("%v\n%s", err, document)
		}
		if of.Kind == "" {
			continue // a comment
		}
		kinds = append(kinds, of.Kind)
		object := map[string]any{
			"v1 ConfigMap": &core.ConfigMap{}, "v1 Service": &core.Service{},
			"apps/v1 Deployment": &apps.Deployment{}, "apps/v1 StatefulSet": &apps.StatefulSet{},
			"networking.k8s.io/v1 Ingress": &networking.Ingress{}, "networking.k8s.io/v1 NetworkPolicy": &networking.NetworkPolicy{},
			"policy/v1 PodDisruptionBudget":          &policy.PodDisruptionBudget{},
			"gateway.networking.k8s.io/v1 HTTPRoute": &gateway.HTTPRoute{}, "monitoring.coreos.com/v1 ServiceMonitor": &monitoring.ServiceMonitor{},
			"keda.sh/v1alpha1 ScaledObject": &scaledObject{}, "keda.sh/v1alpha1 TriggerAuthentication": &triggerAuthentication{},
		}[of.APIVersion+" "+of.Kind]
		if object == nil {
			t.Fatalf("there is no type of %s %s", of.APIVersion, of.Kind)
		}
		if err := yaml.UnmarshalStrict([]byte(document), object); err != nil {
			t.Errorf("%s: %v\n%s", of.Kind, err, document)
		}
		switch o := object.(type) {
		case *apps.Deployment:
			checkPod(t, o.Spec.Selector, &o.Spec.Template)
		case *apps.StatefulSet:
			checkPod(t, o.Spec.Selector, &o.Spec.Template, o.Spec.VolumeClaimTemplates[0].Name)
		case *scaledObject:
			if len(o.Spec.Triggers) != 2 || o.Spec.ScaleTargetRef.Name != o.Name {
				t.Errorf("KEDA scales %+v", o.Spec)
			}
		}
	}
	slices.Sort(kinds)
	return kinds
}

// checkPod checks what the types do not say: that selectors find the pods, that each mount
// has its volume and each volume a mount, and that the pod is as careful as it can be.
func checkPod(t *testing.T, selector *meta.LabelSelector, pod *core.PodTemplateSpec, claims ...string) {
	t.Helper()
	for key, value := range selector.MatchLabels {
		if pod.Labels[key] != value {
			t.Errorf("the selector wants %s=%s, and the pod has %q", key, value, pod.Labels[key])
		}
	}
	c := pod.Spec.Containers[0]
	volumes, mounts := slices.Clone(claims), []string{}
	for _, v := range pod.Spec.Volumes {
		volumes = append(volumes, v.Name)
	}
	for _, m := range c.VolumeMounts {
		mounts = append(mounts, m.Name)
	}
	slices.Sort(volumes)
	slices.Sort(mounts)
	if !slices.Equal(volumes, mounts) {
		t.Errorf("%s: there are the volumes %v, and mounted are %v", c.Name, volumes, mounts)
	}
	if c.SecurityContext == nil || !*c.SecurityContext.ReadOnlyRootFilesystem || *c.SecurityContext.AllowPrivilegeEscalation || !*pod.Spec.SecurityContext.RunAsNonRoot || *pod.Spec.AutomountServiceAccountToken {
		t.Errorf("%s may do more than it has to: %+v", c.Name, c.SecurityContext)
	}
	if !regexp.MustCompile(`:\d+\.\d+\.\d+`).MatchString(c.Image) {
		t.Errorf("the image %q has no version", c.Image)
	}
	for _, e := range c.Env {
		if strings.Contains(e.Name, "TOKEN") && e.Name != "BOARDD_TOKEN_FILE" || e.ValueFrom != nil {
			t.Errorf("%s has the secret %s in its environment", c.Name, e.Name)
		}
	}
}

// TestLint has Helm's linter judge the chart with each file of values.
func TestLint(t *testing.T) {
	t.Parallel()
	for name := range cases {
		for _, m := range lint.AllWithKubeVersionAndSchemaValidation(chartFolder, read(t, name), "work", nil, false).Messages {
			if m.Severity >= support.WarningSev {
				t.Errorf("%s: %v", name, m)
			}
		}
	}
}

// TestWrongValues checks that what cannot be meant is refused, with where it stands.
func TestWrongValues(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ base, values, want string }{
		"nothing":           {"", "{}", "at '/image/repository': minLength: got 0, want 1"},
		"no such value":     {"embedded", "replica: 2", "additional properties 'replica' not allowed"},
		"deeper":            {"redis", "store: {redis: {adress: a:1}}", "at '/store/redis': additional properties 'adress' not allowed"},
		"no such store":     {"embedded", "store: {kind: mysql}", "at '/store/kind': value must be one of 'embedded', 'redis', 'postgres'"},
		"a password in it":  {"postgres", `store: {postgres: {url: "postgres://boardd:secret@db/boardd"}}`, "at '/store/postgres/url'"},
		"no operator":       {"embedded", `tokens: {root: {secret: ""}}`, "at '/tokens/root/secret'"},
		"an image of a day": {"redis", "workers: [{name: w, board: b, image: resize, command: [w], token: {secret: w}}]", "at '/workers/0/image'"},
		"too long a drain":  {"redis", "drainSeconds: 601", "at '/drainSeconds': maximum: got 601, want 600"},
		"too many servers":  {"redis", "replicas: 101", "at '/replicas': maximum: got 101, want 100"},
		"two on one file":   {"embedded", "replicas: 2", "replicas is 2, and the embedded store is one server's own: want 1, or"},
		"jobs on no volume": {"embedded", "persistence: {enabled: false}", "persistence.enabled is false, and the embedded store has the jobs"},
		"a store nowhere":   {"redis", `store: {redis: {address: ""}}`, "store.redis.address is empty: want HOST:PORT"},
		"trust without TLS": {"redis", `store: {redis: {tls: false}}`, "store.redis.ca is given, and store.redis.tls is false"},
		"no database":       {"postgres", `store: {postgres: {url: ""}}`, "store.postgres.url is empty: want postgres://"},
		"no host":           {"embedded", `ingress: {host: ""}`, "ingress.host is empty"},
		"a route nowhere":   {"redis", "httpRoute: {parentRefs: []}", "httpRoute.parentRefs or httpRoute.hostnames is empty"},
		"metrics unread":    {"redis", `tokens: {metrics: {secret: ""}}`, "tokens.metrics.secret is empty"},
		"more than at most": {"redis", "workers: [{name: w, board: b, image: 'w:1', command: [w], token: {secret: w}, minReplicas: 11}]", "w has a minReplicas above its maxReplicas"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			values, err := chartutil.ReadValues([]byte(c.values))
			if err != nil {
				t.Fatal(err)
			}
			if c.base != "" {
				values = chartutil.CoalesceTables(values, read(t, c.base))
			}
			if _, err := render(t, values); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error that says %s", err, c.want)
			}
		})
	}
}

// TestEdges checks that what stands at the limits of the schema is taken, and that no more
// than two values are needed.
func TestEdges(t *testing.T) {
	t.Parallel()
	least := chartutil.Values{"image": map[string]any{"repository": "r.example.org/boardd"}, "tokens": map[string]any{"root": map[string]any{"secret": "s"}}}
	if _, err := render(t, least); err != nil {
		t.Error(err)
	}
	values := read(t, "redis")
	values["drainSeconds"], values["replicas"] = 600, 100
	text, err := render(t, values)
	if err != nil || !strings.Contains(text, "terminationGracePeriodSeconds: 635\n") || !strings.Contains(text, `drain_delay = "600s"`) {
		t.Errorf("%v\n%s", err, text)
	}
}
