// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/utils/ptr"

	configv1alpha1 "github.com/celset/celset/apis/config/v1alpha1"
	"github.com/celset/celset/cmd/kubectl-celset/draw"
	"github.com/celset/celset/cmd/kubectl-celset/fit"
	"github.com/celset/celset/cmd/kubectl-celset/gang"
	"github.com/celset/celset/internal/clusterstate"
	"github.com/celset/celset/internal/clusterstate/reading"
	"github.com/celset/celset/internal/machine"
	"github.com/celset/celset/internal/topology"
)

// TestPictures generates the pictures on the pages, as "kubectl celset draw -o svg" would. Where possible, celset allocates the
// devices for claims on the pages. The flag -update writes the pictures.
func TestPictures(t *testing.T) {
	for name, picture := range map[string]func(*testing.T) *draw.Picture{
		"ring": ringPicture, "torus": torusPicture, "numa": numaPicture, "gang": gangPicture,
	} {
		t.Run(name, func(t *testing.T) {
			var svg bytes.Buffer
			require.NoError(t, picture(t).SVG(&svg))
			path := filepath.Join(root, "docs", "pictures", name+".svg")
			if *update {
				require.NoError(t, os.WriteFile(path, svg.Bytes(), 0o644))
			}
			content, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, string(content), svg.String(), "run make generate-docs")
		})
	}
}

// ringPicture draws the claims of the page "getting started" on devices that also publish their links.
func ringPicture(t *testing.T) *draw.Picture {
	o := objectsOf(t, textOfPage(t, startPage))
	devices := o.Slices[0].Spec.Devices
	for i := range devices {
		before, after := devices[(i+len(devices)-1)%len(devices)], devices[(i+1)%len(devices)]
		devices[i].Attributes[topology.AttributePeers] = resourceapi.DeviceAttribute{StringValue: ptr.To(before.Name + "," + after.Name)}
	}
	o.Claims = append(o.Claims, clusterstate.Instantiate(o.Templates[0], "ring"))
	return allocated(t, o, "small", "ring")
}

// torusPicture draws a claim that gets a block around the edges of a torus, because another claim has the middle.
func torusPicture(t *testing.T) *draw.Picture {
	const claim = `
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: %s}
spec:
  devices:
    requests:
    - name: mla
      exactly: {deviceClassName: mla.example.com, count: %d, selectors: [{cel: {expression: "%s"}}]}
    constraints:
    - matchAttribute: celset.dev/block
    config:
    - opaque:
        driver: celset.dev
        parameters:
          apiVersion: celset.dev/v1alpha1
          kind: CELDeviceConstraint
          name: block
          expression: |
            devices.box(d, [d.attributes['mla.example.com'].row, d.attributes['mla.example.com'].col], [%s], [8, 8])
`
	torus, err := topology.NewTorus(accelerators, 8, 8)
	require.NoError(t, err)
	for _, d := range torus.Devices {
		d.Attributes[topology.AttributePeers] = resourceapi.DeviceAttribute{StringValue: ptr.To(strings.Join(d.Neighbors, ","))}
	}
	o := objectsOf(t, textOfPage(t, startPage),
		fmt.Sprintf(claim, "evaluation", 16, "device.attributes['mla.example.com'].row in [2, 3, 4, 5] && device.attributes['mla.example.com'].col >= 2", "4, 4"),
		fmt.Sprintf(claim, "training", 16, "true", "4, 4"))
	o.Slices, err = torus.ResourceSlices(nodeName)
	require.NoError(t, err)
	o.Nodes = nil
	return allocated(t, o, "evaluation", "training")
}

// numaPicture draws a claim with GPUs, their network interfaces and CPUs.
func numaPicture(t *testing.T) *draw.Picture {
	hgx, err := machine.ByName("hgx-h100-cpu")
	require.NoError(t, err)
	o := objectsOf(t, textOfPage(t, "docs/hardware/numa.md"))
	o.Slices, err = hgx.ResourceSlices(nodeName)
	require.NoError(t, err)
	for _, template := range o.Templates {
		o.Claims = append(o.Claims, clusterstate.Instantiate(template, template.Name))
	}
	return allocated(t, o, "gpus-and-cpus", "gpus-rails-and-cpus")
}

// gangPicture draws the nodes that a PodGroup gets if only some racks have enough free nodes.
func gangPicture(t *testing.T) *draw.Picture {
	o := objectsOf(t, `
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata:
  name: train
  annotations:
    celset.dev/node-set-constraint: |
      apiVersion: celset.dev/v1alpha1
      kind: CELNodeSetConstraint
      name: two_racks
      expression: `+rackExpression(t)+`
spec:
  schedulingPolicy: {gang: {minCount: 16}}
  schedulingConstraints: {topology: [{key: celset.dev/two_racks}]}
`)
	for _, rack := range []string{"a", "b", "c", "d"} {
		for i := range 8 {
			o.Nodes = append(o.Nodes, &corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%s%d", rack, i), Labels: map[string]string{"example.com/rack": rack}},
				Spec:       corev1.NodeSpec{Unschedulable: rack == "b" && i == 3},
			})
		}
	}
	for i := range 16 {
		o.Pods = append(o.Pods, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("train-", i)},
			Spec:       corev1.PodSpec{SchedulerName: scheduler, SchedulingGroup: &corev1.PodSchedulingGroup{PodGroupName: ptr.To("train")}},
		})
	}
	state := clusterstate.New(o)
	args := &configv1alpha1.DynamicResourcesCELArgs{}
	configv1alpha1.SetDefaults(args)
	report, err := gang.Run(t.Context(), state, state.Group("default", "train"), fit.Options{Features: allFeatures, Args: args})
	require.NoError(t, err)
	require.Len(t, report.Chosen, 16, "%+v", report)
	return report.Picture()
}

// rackExpression returns the page's expression for two racks with eight nodes each.
func rackExpression(t *testing.T) string {
	content, err := os.ReadFile(filepath.Join(root, "docs", "gangs.md"))
	require.NoError(t, err)
	_, row, found := strings.Cut(string(content), "| two racks with eight nodes each | `")
	require.True(t, found)
	expression, _, _ := strings.Cut(row, "`")
	return expression
}

// textOfPage returns the objects of a page.
func textOfPage(t *testing.T, page string) string {
	content, err := os.ReadFile(filepath.Join(root, page))
	require.NoError(t, err)
	all, err := parse(page, string(content))
	require.NoError(t, err)
	var texts []string
	for _, b := range all {
		if b.language == "yaml" {
			texts = append(texts, b.text)
		}
	}
	return strings.Join(texts, "\n---\n")
}

// objectsOf reads objects from texts, as kubectl celset reads them from files.
func objectsOf(t *testing.T, texts ...string) *clusterstate.Objects {
	o, err := reading.Files(resource.FilenameOptions{Filenames: []string{"-"}}, strings.NewReader(strings.Join(texts, "\n---\n")), "default")
	require.NoError(t, err)
	return o
}

// allocated makes celset allocate the named claims one after the other, and draws the node. It highlights the last claim.
func allocated(t *testing.T, o *clusterstate.Objects, names ...string) *draw.Picture {
	state := clusterstate.New(o)
	node := state.Nodes()[0]
	for _, name := range names {
		problem := state.Problem(&clusterstate.Subject{Claims: []*resourceapi.ResourceClaim{state.Claim("default", name)}}, allFeatures)
		a, err := problem.NewAllocator(t.Context())
		require.NoError(t, err)
		results, err := a.Allocate(t.Context(), node, problem.Claims)
		require.NoError(t, err)
		require.Len(t, results, 1, name)
		problem.Claims[0].Status.Allocation = &results[0]
	}
	picture, err := draw.New(t.Context(), state, node, draw.Options{Features: allFeatures, Claims: []*resourceapi.ResourceClaim{state.Claim("default", names[len(names)-1])}})
	require.NoError(t, err)
	return picture
}
