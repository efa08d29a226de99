// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/apis/wellknown"
	"github.com/celset/celset/cel/cluster"
	"github.com/celset/celset/test/internal/env"
)

// TestStories runs the scripts in testdata/stories: user stories of the proposals, and statements of
// docs/placement-differences.md. testdata/README.md explains the commands of scripts.
func TestStories(t *testing.T) {
	scripts, err := filepath.Glob("testdata/stories/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, scripts)
	for _, file := range scripts {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) { runScript(t, file) })
	}
}

// runScript runs a script. Scripts don't run in parallel, because they share the cluster-scoped ManagedClusters.
func runScript(t *testing.T, file string) {
	var s *script
	commands := map[string]func(*testscript.TestScript, bool, []string){}
	for name, run := range scriptCommands {
		commands[name] = func(_ *testscript.TestScript, _ bool, args []string) { run(s, args) }
	}
	testscript.Run(t, testscript.Params{
		Files: []string{file}, Cmds: commands,
		Setup: func(of *testscript.Env) error {
			s = &script{TB: of.T().(testing.TB)}
			return nil
		},
	})
}

// A script is the state of a running script.
type script struct {
	testing.TB
	scene
	// decided is the resource version of the PlacementDecision that the command "decision" has read last.
	decided string
}

func (s *script) number(text string) int32 {
	n, err := strconv.ParseInt(text, 10, 32)
	require.NoError(s, err)
	return int32(n)
}

func (s *script) cluster(name string) *clusterv1.ManagedCluster {
	return read(s, s.scene, "", name, &clusterv1.ManagedCluster{})
}

// pairs parses arguments "key=value". An argument "key=" removes the key.
func pairs(args []string) map[string]string {
	result := map[string]string{}
	for _, arg := range args {
		key, value, _ := strings.Cut(arg, "=")
		result[key] = value
	}
	return result
}

// taints parses arguments "key=value:Effect".
func taints(args []string) (result []clusterv1.Taint) {
	for _, arg := range args {
		of, effect, _ := strings.Cut(arg, ":")
		key, value, _ := strings.Cut(of, "=")
		result = append(result, clusterv1.Taint{Key: key, Value: value, Effect: clusterv1.TaintEffect(effect), TimeAdded: metav1.Now()})
	}
	return result
}

// shorts maps the short names in scripts to condition types.
var shorts = map[string]string{
	"satisfied": clusterv1beta1.PlacementConditionSatisfied, "misconfigured": clusterv1beta1.PlacementConditionMisconfigured, "failed": wellknown.ConditionEvaluationFailed,
}

var scriptCommands = map[string]func(*script, []string){
	// fleet creates a namespace to which a set of all clusters is bound. scene creates a namespace without a binding.
	"fleet": func(s *script, args []string) { s.scene = newFleet(s, strings.Join(args, "")) },
	"scene": func(s *script, args []string) { s.scene = newScene(s, strings.Join(args, "")) },
	"set":   func(s *script, args []string) { s.set(s, args[0], exclusive) },
	"bind":  func(s *script, args []string) { s.bind(s, args[0]) },
	"unbind": func(s *script, args []string) {
		require.NoError(s, s.Delete(s.Context(), read(s, s.scene, s.namespace, args[0], &clusterv1beta2.ManagedClusterSetBinding{})))
	},
	"join": func(s *script, args []string) {
		has := traits{labels: map[string]string{}, claims: map[string]string{}}
		for i := 1; i < len(args); i += 2 {
			of := args[i+1]
			switch args[i] {
			case "-set":
				has.set = of
			case "-label":
				maps.Copy(has.labels, pairs([]string{of}))
			case "-claim":
				maps.Copy(has.claims, pairs([]string{of}))
			case "-version":
				has.version = of
			case "-taint":
				has.taints = append(has.taints, taints([]string{of})...)
			case "-available":
				has.available = metav1.ConditionStatus(of)
			case "-memory":
				has.allocate = clusterv1.ResourceList{"memory": resource.MustParse(of)}
			default:
				require.Fail(s, "unknown option "+args[i])
			}
		}
		s.join(s, args[0], has)
	},
	"leave": func(s *script, args []string) { require.NoError(s, s.Delete(s.Context(), s.cluster(args[0]))) },
	"label": func(s *script, args []string) {
		change(s, s.scene, s.cluster(args[0]), func(c *clusterv1.ManagedCluster) { maps.Copy(c.Labels, pairs(args[1:])) })
	},
	"claims": func(s *script, args []string) {
		changeStatus(s, s.scene, s.cluster(args[0]), func(c *clusterv1.ManagedCluster) { c.Status.ClusterClaims = claimsOf(pairs(args[1:])) })
	},
	"version": func(s *script, args []string) {
		changeStatus(s, s.scene, s.cluster(args[0]), func(c *clusterv1.ManagedCluster) { c.Status.Version.Kubernetes = args[1] })
	},
	"memory": func(s *script, args []string) {
		changeStatus(s, s.scene, s.cluster(args[0]), func(c *clusterv1.ManagedCluster) { c.Status.Allocatable["memory"] = resource.MustParse(args[1]) })
	},
	"available": func(s *script, args []string) {
		changeStatus(s, s.scene, s.cluster(args[0]), func(c *clusterv1.ManagedCluster) { setAvailable(c, metav1.ConditionStatus(args[1])) })
	},
	"taint": func(s *script, args []string) {
		change(s, s.scene, s.cluster(args[0]), func(c *clusterv1.ManagedCluster) { c.Spec.Taints = taints(args[1:]) })
	},
	"fail":  func(s *script, args []string) { s.fail(s, args[0]) },
	"mend":  func(s *script, args []string) { s.mend(s, args[0]) },
	"apply": func(s *script, args []string) { s.apply(s, args[0]) },
	"place": func(s *script, args []string) { s.place(s, args[0], args[1]) },
	// change sets some fields of a Placement's spec. replace sets the whole spec.
	"change": func(s *script, args []string) {
		change(s, s.scene, s.live(s, args[0]), func(p *clusterv1beta1.Placement) { require.NoError(s, yaml.UnmarshalStrict([]byte(args[1]), &p.Spec)) })
	},
	"replace": func(s *script, args []string) {
		change(s, s.scene, s.live(s, args[0]), func(p *clusterv1beta1.Placement) { p.Spec = specOf(s, args[1]) })
	},
	"selected":  func(s *script, args []string) { s.requireSelected(s, args[0], args[1:]...) },
	"condition": func(s *script, args []string) { s.requireCondition(s, args[0], shorts[args[1]], args[2], args[3:]...) },
	"score":     func(s *script, args []string) { s.score(s, s, args[0], args[1], args[2], s.number(args[3])) },
	"scores": func(s *script, args []string) {
		env.Becomes(s, strings.Join(args[1:], " "), func() string { return strings.TrimSpace(s.scores(s, args[0])) })
	},
	"expire": func(s *script, args []string) {
		changeStatus(s, s.scene, read(s, s.scene, args[0], args[1], &clusterv1alpha1.AddOnPlacementScore{}), func(scores *clusterv1alpha1.AddOnPlacementScore) {
			scores.Status.ValidUntil = ptr.To(metav1.NewTime(time.Now().Add(-time.Hour)))
		})
	},
	"quantities": func(s *script, args []string) {
		change(s, s.scene, read(s, s.scene, args[0], args[1], &clusterv1alpha1.AddOnPlacementScore{}), func(scores *clusterv1alpha1.AddOnPlacementScore) {
			scores.Annotations = map[string]string{cluster.QuantitiesAnnotation: args[2]}
		})
	},
	"notes": func(s *script, args []string) {
		env.Becomes(s, slices.Clone(args[2:]), func() []string { return s.notes(s, args[0], args[1]) })
	},
	// decision requires that the PlacementDecision has not changed since the last use of this command.
	"decision": func(s *script, args []string) {
		decision := read(s, s.scene, s.namespace, args[0]+"-decision-1", &clusterv1beta1.PlacementDecision{})
		if s.decided == "" {
			s.decided = decision.ResourceVersion
		}
		require.Equal(s, s.decided, decision.ResourceVersion, "nothing may be written")
	},
}
