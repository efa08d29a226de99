// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/allocator/explain"
	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/cmd/kubectl-celset/suite"
	"github.com/celset/celset/internal/testing/corpus"
	"github.com/celset/celset/internal/testing/shape"
	"github.com/celset/celset/internal/topology"
)

const (
	nodeName  = "node-1"
	scheduler = "celset-scheduler"
)

// TestHardware generates the drawings and the costs on the pages in docs/hardware; the flag -update writes them.
func TestHardware(t *testing.T) {
	for page, examples := range hardwarePages(t) {
		t.Run(page, func(t *testing.T) {
			p := readHardwarePage(t, page)
			require.Len(t, p.templates, len(examples), "each template of the page is an example, and no other")
			for _, e := range examples {
				e.requireTested(t, p)
			}
			sections := map[string]string{}
			var told []*example
			for _, e := range examples {
				if e.inCosts || page == shapesPage {
					told = append(told, e)
				}
				if e.drawn {
					sections[e.template] = e.tell(t, p)
				}
			}
			sections["costs"] = costs(t, p, told)
			checkGenerated(t, filepath.Join("docs", "hardware", page), sections)
		})
	}
}

// TestEveryHardwarePageIsTried checks that hardwarePages has every page in docs/hardware, except walkthroughPages.
func TestEveryHardwarePageIsTried(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "docs", "hardware", "*.md"))
	require.NoError(t, err)
	tried := hardwarePages(t)
	for _, file := range files {
		if !slices.Contains(walkthroughPages, filepath.Base(file)) {
			require.Contains(t, tried, filepath.Base(file))
		}
	}
	require.Len(t, tried, len(files)-len(walkthroughPages))
}

// TestEveryClaimHasCases checks that each template of a page, and each pod with an extended resource, is the subject of a case in
// docs/hardware/tests. The test of kubectl celset runs these cases.
func TestEveryClaimHasCases(t *testing.T) {
	cases, err := filepath.Glob(filepath.Join(root, "docs", "hardware", "tests", "*.yaml"))
	require.NoError(t, err)
	tested := map[string][]string{}
	for _, path := range cases {
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		var test suite.ExpressionTest
		require.NoError(t, yaml.UnmarshalStrict(content, &test))
		require.Len(t, test.Files, 1, path)
		for _, c := range test.Cases {
			_, name, _ := strings.Cut(c.Subject, "/")
			tested[filepath.Base(test.Files[0])] = append(tested[filepath.Base(test.Files[0])], name)
		}
	}
	for page := range hardwarePages(t) {
		for name := range readHardwarePage(t, page).templates {
			require.Contains(t, tested[page], name, "docs/hardware/%s: add a case to docs/hardware/tests", page)
		}
	}
}

// A hardwarePage is the parsed content of a page.
type hardwarePage struct {
	text      string
	classes   classList
	templates map[string]*resourceapi.ResourceClaimTemplate
	pods      []*corev1.Pod
}

func readHardwarePage(t *testing.T, name string) *hardwarePage {
	t.Helper()
	path := filepath.Join("docs", "hardware", name)
	content, err := os.ReadFile(filepath.Join("..", "..", path))
	require.NoError(t, err)
	found, err := parse(path, string(content))
	require.NoError(t, err)
	p := &hardwarePage{text: string(content), templates: map[string]*resourceapi.ResourceClaimTemplate{}}
	for _, b := range found {
		if b.language != "yaml" {
			continue
		}
		for _, object := range objects(t, b) {
			p.add(t, object)
		}
	}
	for _, pod := range p.pods {
		p.requireUsable(t, pod)
	}
	return p
}

func (p *hardwarePage) add(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	switch object.GetKind() {
	case "DeviceClass":
		p.classes = append(p.classes, typed[resourceapi.DeviceClass](t, object))
	case "ResourceClaimTemplate":
		require.NotContains(t, p.templates, object.GetName())
		p.templates[object.GetName()] = typed[resourceapi.ResourceClaimTemplate](t, object)
	case "ResourceClaim":
		// These claims need DeviceAttributes objects. test/cmd/kubectl-celset tests the claims.
	case "Pod":
		p.pods = append(p.pods, typed[corev1.Pod](t, object))
	default:
		t.Fatalf("unexpected %s %s", object.GetKind(), object.GetName())
	}
}

func typed[T any](t *testing.T, object *unstructured.Unstructured) *T {
	t.Helper()
	result := new(T)
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, result, true))
	return result
}

// requireUsable requires that users can copy the pod from the page: the pod names our scheduler, and its containers get the
// devices.
func (p *hardwarePage) requireUsable(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	require.Equal(t, scheduler, pod.Spec.SchedulerName)
	if len(pod.Spec.ResourceClaims) == 0 {
		p.addExtended(t, pod)
		return
	}
	require.NotEmpty(t, pod.Spec.ResourceClaims)
	for _, claim := range pod.Spec.ResourceClaims {
		require.Contains(t, p.templates, ptr.Deref(claim.ResourceClaimTemplateName, ""))
		for _, container := range pod.Spec.Containers {
			require.Contains(t, container.Resources.Claims, corev1.ResourceClaim{Name: claim.Name})
		}
	}
}

// addExtended adds a claim for a pod with an extended resource, as the scheduler would create it. The claim gets the name of
// the pod.
func (p *hardwarePage) addExtended(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	require.NotContains(t, p.templates, pod.Name)
	template := &resourceapi.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Name: pod.Name}}
	requests := &template.Spec.Spec.Devices.Requests
	for i, container := range pod.Spec.Containers {
		for name, count := range container.Resources.Limits {
			at := slices.IndexFunc(p.classes, func(c *resourceapi.DeviceClass) bool {
				return ptr.Deref(c.Spec.ExtendedResourceName, "") == string(name)
			})
			require.GreaterOrEqual(t, at, 0, "no class of the page is for %s", name)
			*requests = append(*requests, resourceapi.DeviceRequest{
				Name: fmt.Sprintf("container-%d-request-%d", i, len(*requests)),
				Exactly: &resourceapi.ExactDeviceRequest{
					DeviceClassName: p.classes[at].Name, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: count.Value(),
				},
			})
		}
	}
	require.NotEmpty(t, *requests, "the pod asks for no devices")
	p.templates[pod.Name] = template
}

type classList []*resourceapi.DeviceClass

func (l classList) List() ([]*resourceapi.DeviceClass, error) { return l, nil }

func (l classList) Get(name string) (*resourceapi.DeviceClass, error) {
	for _, class := range l {
		if class.Name == name {
			return class, nil
		}
	}
	return nil, fmt.Errorf("the page has no DeviceClass %q", name)
}

// The features of a scheduler with all feature gates on.
var (
	allFeatures = structured.Features{
		AdminAccess: true, PrioritizedList: true, PartitionableDevices: true, DeviceTaints: true,
		DeviceBindingAndStatus: true, ConsumableCapacity: true, ListTypeAttributes: true,
	}
	selectorFeatures = dracel.Features{EnableConsumableCapacity: true, EnableListTypeAttributes: true}
)

// problem returns the allocation problem for the template's claim on a node with the devices in use.
func (p *hardwarePage) problem(t *testing.T, e *example, inUse shape.Set) *explain.Problem {
	t.Helper()
	template := p.templates[e.template]
	require.NotNil(t, template, "the page has no template %s", e.template)
	claim := &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: e.template}, Spec: template.Spec.Spec,
	}
	return &explain.Problem{Problem: allocator.Problem{
		Claims: []*resourceapi.ResourceClaim{claim}, Allocated: e.allocated(inUse),
		Classes: p.classes, Slices: e.slices,
		Features:  allFeatures,
		Selectors: dracel.NewCache(10, selectorFeatures),
		Options:   []allocator.Option{allocator.WithCache(allocator.NewCache())},
	}}
}

// allocated returns an allocated claim for each device in use. For a shared device, the claim consumes the whole capacity.
func (e *example) allocated(inUse shape.Set) []*resourceapi.ResourceClaim {
	var claims []*resourceapi.ResourceClaim
	for i := range inUse.All() {
		name := fmt.Sprintf("other-%d", len(claims))
		if d := e.devices[i]; d.AllowMultipleAllocations {
			claims = append(claims, share(name, d, cpusOf(d)))
		} else {
			claims = append(claims, holder(name, resourceapi.DeviceRequestAllocationResult{Driver: d.Driver, Device: d.Name}))
		}
	}
	return claims
}

// holder returns a claim that holds a device of the node.
func holder(name string, result resourceapi.DeviceRequestAllocationResult) *resourceapi.ResourceClaim {
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	result.Request, result.Pool = "device", nodeName
	claim.Status.Allocation = &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{
		Results: []resourceapi.DeviceRequestAllocationResult{result},
	}}
	return claim
}

const cpuCapacity = resourceapi.QualifiedName("dra.cpu/cpu")

// cpusOf returns the number of CPUs of a device.
func cpusOf(d topology.Device) int64 {
	all := d.Capacity[cpuCapacity].Value
	return all.Value()
}

// share returns a claim that holds CPUs of a device.
func share(name string, d topology.Device, cpus int64) *resourceapi.ResourceClaim {
	return holder(name, resourceapi.DeviceRequestAllocationResult{
		Driver: d.Driver, Device: d.Name, ShareID: ptr.To(types.UID(name)),
		ConsumedCapacity: map[resourceapi.QualifiedName]resource.Quantity{cpuCapacity: *resource.NewQuantity(cpus, resource.DecimalSI)},
	})
}

var node = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName}}

// requireTested requires that the tests and benchmarks of the search contain the expression. Numbers, spaces and the names of
// invented drivers may differ.
func (e *example) requireTested(t *testing.T, p *hardwarePage) {
	t.Helper()
	problem := p.problem(t, e, 0)
	constraints, err := v1alpha1.Resolve(problem.Claims[0], p.classes)
	require.NoError(t, err)
	require.Equal(t, e.plain, len(constraints) == 0)
	if e.asked {
		return // TestAsks tests these examples more thoroughly
	}
	known := map[string]bool{}
	for _, s := range shape.Scenarios() {
		known[skeleton(s.Expression)] = true
	}
	for _, e := range corpus.Expressions() {
		known[skeleton(e.Text)] = true
	}
	for _, c := range constraints {
		require.True(t, known[skeleton(c.Expression)], "%s: no such expression is tested: %s", c.Name, c.Expression)
	}
}

var (
	comments = regexp.MustCompile(`//.*`)
	numbers  = regexp.MustCompile(`\b\d+\b`)
	blanks   = regexp.MustCompile(`\s+`)
	drivers  = regexp.MustCompile(`'\w+\.example\.com'`)
)

func skeleton(expression string) string {
	expression = comments.ReplaceAllString(expression, "")
	expression = strings.ReplaceAll(expression, `"`, `'`)
	expression = drivers.ReplaceAllString(expression, "'driver'")
	return blanks.ReplaceAllString(numbers.ReplaceAllString(expression, "N"), "")
}

func TestSkeleton(t *testing.T) {
	require.Equal(t, skeleton("a.x == 12 && // twelve\n\tb"), skeleton("a.x==3&&b"))
	require.NotEqual(t, skeleton("a.x == 1"), skeleton("a.y == 1"))
	require.NotEqual(t, skeleton("a.x1 == 1"), skeleton("a.x2 == 1"), "a name has its number")
}
