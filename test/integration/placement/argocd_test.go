// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/ptr"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/internal/env"
)

// applicationSet has the fields of an ApplicationSet that its clusterDecisionResource generator reads.
type applicationSet struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Generators []struct {
			ClusterDecisionResource struct {
				ConfigMapRef        string               `json:"configMapRef"`
				LabelSelector       metav1.LabelSelector `json:"labelSelector"`
				RequeueAfterSeconds int                  `json:"requeueAfterSeconds"`
			} `json:"clusterDecisionResource"`
		} `json:"generators"`
	} `json:"spec"`
}

// argocd holds the manifests about Argo CD in docs/ocm.md. The ApplicationSet is separate, because the test's API server does
// not have its kind.
type argocd struct {
	objects []string
	set     applicationSet
}

func readArgoCD(t testing.TB) argocd {
	t.Helper()
	content, err := os.ReadFile("../../../docs/ocm.md")
	require.NoError(t, err)
	_, section, found := strings.Cut(string(content), "\n## Applications by Argo CD\n")
	require.True(t, found)
	var result argocd
	for _, block := range regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$").FindAllStringSubmatch(section, -1) {
		if strings.Contains(block[1], "kind: ApplicationSet") {
			require.NoError(t, yaml.Unmarshal([]byte(block[1]), &result.set))
			continue
		}
		result.objects = append(result.objects, block[1])
	}
	require.Len(t, result.set.Spec.Generators, 1)
	return result
}

// generate imitates the clusterDecisionResource generator of Argo CD on a hub, with the rights of Argo CD's controller. known
// are the clusters in Argo CD. It returns the parameters for each decision. Some versions of Argo CD panic if a value is no
// text; generate fails then.
func (s scene) generate(t testing.TB, set applicationSet, known ...string) (parameters []map[string]string, err error) {
	t.Helper()
	generator := set.Spec.Generators[0].ClusterDecisionResource
	kinds := &corev1.ConfigMap{}
	require.NoError(t, s.Get(t.Context(), client.ObjectKey{Namespace: set.Namespace, Name: generator.ConfigMapRef}, kinds))
	group, err := schema.ParseGroupVersion(kinds.Data["apiVersion"])
	require.NoError(t, err)
	reader, err := dynamic.NewForConfig(s.ConfigOf(t, "system:serviceaccount:"+set.Namespace+":argocd-applicationset-controller"))
	require.NoError(t, err)
	list, err := reader.Resource(group.WithResource(kinds.Data["kind"])).Namespace(set.Namespace).
		List(t.Context(), metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(&generator.LabelSelector)})
	if err != nil {
		return nil, err
	}
	if len(list.Items) == 0 {
		return nil, errors.New("nothing is found, and all Applications stay")
	}
	parameters = []map[string]string{}
	for _, object := range list.Items {
		status, _ := object.Object["status"].(map[string]any)
		if len(status) == 0 {
			continue
		}
		decisions, ok := status[kinds.Data["statusListKey"]].([]any)
		if !ok {
			return nil, fmt.Errorf("%s has a status without list", object.GetName())
		}
		for _, decision := range decisions {
			fields, ok := decision.(map[string]any)
			if !ok {
				return nil, fmt.Errorf("%v is no object", decision)
			}
			name, ok := fields[kinds.Data["matchKey"]].(string)
			if !ok || !slices.Contains(known, name) {
				continue
			}
			of := map[string]string{"name": name, "server": "https://" + name}
			for key, value := range fields {
				if of[key], ok = value.(string); !ok {
					return nil, fmt.Errorf("%s of %s is a %T", key, name, value)
				}
			}
			parameters = append(parameters, of)
		}
	}
	return parameters, nil
}

func (s scene) generated(t testing.TB, set applicationSet, known ...string) []string {
	t.Helper()
	parameters, err := s.generate(t, set, known...)
	if err != nil {
		return []string{err.Error()}
	}
	names := []string{}
	for _, of := range parameters {
		names = append(names, of["clusterName"])
	}
	slices.Sort(names)
	return names
}

// applyText applies the objects in a manifest, and deletes them after the test.
func (s scene) applyText(t testing.TB, text string) {
	t.Helper()
	applied, err := controlplane.Apply(t.Context(), s.RESTConfig(), []byte(text), controlplane.ApplyOptions{})
	require.NoError(t, err)
	for _, object := range applied {
		s.cleanUp(t, object)
	}
}

// TestArgoCDReadsDecisions checks that the manifests in docs/ocm.md lead to an Application for each selected cluster, also
// after the selection changes.
func TestArgoCDReadsDecisions(t *testing.T) {
	page := readArgoCD(t)
	s := newFleet(t, "argocd")
	known := []string{"a", "b", "c", "d"}
	for name, cloud := range map[string]string{"a": "Azure", "b": "Amazon", "c": "Google", "d": "Google"} {
		s.join(t, name, traits{labels: map[string]string{"cloud": cloud}})
	}
	for _, objects := range page.objects {
		s.applyText(t, objects)
	}
	env.Becomes(t, []string{"b", "c"}, func() []string { return s.generated(t, page.set, known...) })
	parameters, err := s.generate(t, page.set, known...)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"name": "b", "server": "https://b", "clusterName": "b", "reason": "in ManagedClusterSet global, matches spec.predicates[0]"}, parameters[0])
	require.Equal(t, []string{"c"}, s.generated(t, page.set, "c", "x"), "clusters that Argo CD does not know are left out")

	change(t, s, s.live(t, "web"), func(p *clusterv1beta1.Placement) { p.Spec.NumberOfClusters = nil })
	env.Becomes(t, []string{"b", "c", "d"}, func() []string { return s.generated(t, page.set, known...) })
	change(t, s, s.live(t, "web"), func(p *clusterv1beta1.Placement) {
		p.Spec.Predicates[0].RequiredClusterSelector.CelSelector.CelExpressions = []string{"false"}
	})
	env.Becomes(t, []string{}, func() []string { return s.generated(t, page.set, known...) })

	// Scores are numbers. The versions of Argo CD that the page names fail because of them. TestArgoCDReadsAllSlices checks
	// that the generator reads all PlacementDecisions of a Placement as one list of clusters.
	change(t, s, s.live(t, "web"), func(p *clusterv1beta1.Placement) {
		p.Spec.Predicates, p.Spec.PrioritizerPolicy = nil, clusterv1beta1.PrioritizerPolicy{Mode: clusterv1beta1.PrioritizerPolicyModeExact, Configurations: []clusterv1beta1.PrioritizerConfig{
			{Weight: 1, ScoreCoordinate: &clusterv1beta1.ScoreCoordinate{Type: clusterv1beta1.ScoreCoordinateTypeBuiltIn, BuiltIn: "Balance"}},
		}}
		p.Spec.NumberOfClusters = ptr.To[int32](1)
	})
	env.Becomes(t, []string{"score of a is a int64"}, func() []string { return s.generated(t, page.set, known...) })
}

// Several PlacementDecisions form one list of clusters.
func TestArgoCDReadsAllSlices(t *testing.T) {
	page := readArgoCD(t)
	s := newFleet(t, "argocd")
	var known []string
	for i := range 130 {
		known = append(known, fmt.Sprintf("c%03d", i))
	}
	for _, name := range known {
		s.join(t, name, traits{labels: map[string]string{"cloud": "Amazon"}})
	}
	for _, objects := range page.objects {
		s.applyText(t, objects)
	}
	change(t, s, s.live(t, "web"), func(p *clusterv1beta1.Placement) { p.Spec.NumberOfClusters = nil })
	env.Becomes(t, known, func() []string { return s.generated(t, page.set, known...) })
}
