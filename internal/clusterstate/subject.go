// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/klog/v2"

	"github.com/celset/celset/allocator/podclaims"
	"github.com/celset/celset/apis/nearest"
)

// Subject is the object that a user asks about: a pod with its claims, or a claim.
type Subject struct {
	// Pod is nil if the subject is a claim.
	Pod *corev1.Pod
	// Claims has the claims of the pod in the pod's order, or the single claim. If a claim does not exist yet, it is made from
	// its template. The claim for extended resources comes last.
	Claims []*resourceapi.ResourceClaim
	// Made has the elements of Claims that were made from templates.
	Made []*resourceapi.ResourceClaim
	// Refused has the reasons why the pod, or any pod that uses the claim, gets no devices on any node.
	Refused []string
	// Missing is an error about a claim or template that does not exist. If it is set, Claims is incomplete.
	Missing error
}

// Pending returns the claims that have no devices yet.
func (s *Subject) Pending() []*resourceapi.ResourceClaim {
	return slices.DeleteFunc(slices.Clone(s.Claims), func(claim *resourceapi.ResourceClaim) bool {
		return claim.Status.Allocation != nil
	})
}

// ExclusionFrom returns the reason why the devices of an allocated claim keep the pod away from a node, or "".
func (s *Subject) ExclusionFrom(node *corev1.Node) (string, error) {
	for _, claim := range s.Claims {
		allocation := claim.Status.Allocation
		if allocation == nil || allocation.NodeSelector == nil {
			continue
		}
		selector, err := nodeaffinity.NewNodeSelector(allocation.NodeSelector)
		if err != nil {
			return "", fmt.Errorf("claim %s: status.allocation.nodeSelector: %w", klog.KObj(claim), err)
		}
		if !selector.Match(node) {
			return fmt.Sprintf("claim %s has devices that are not available on the node", klog.KObj(claim)), nil
		}
	}
	return "", nil
}

// String returns kind, namespace and name of the subject.
func (s *Subject) String() string {
	if s.Pod != nil {
		return "Pod " + s.Pod.Namespace + "/" + s.Pod.Name
	}
	return "ResourceClaim " + s.Claims[0].Namespace + "/" + s.Claims[0].Name
}

// The kinds of objects that an argument can name.
const (
	PodKind      = "pod"
	ClaimKind    = "claim"
	TemplateKind = "template"
	ClassKind    = "class"
	GroupKind    = "podgroup"
	NodeKind     = "node"
	// AttributesKind is DeviceAttributes.
	AttributesKind = "deviceattributes"
	// PlacementKind exists only on a hub. A State has no placements.
	PlacementKind = "placement"
)

// kindNames maps the names and short names that kubectl accepts for kinds to the constants above.
var kindNames = map[string]string{
	"pod": PodKind, "pods": PodKind, "po": PodKind,
	"claim": ClaimKind, "resourceclaim": ClaimKind, "resourceclaims": ClaimKind,
	"template": TemplateKind, "resourceclaimtemplate": TemplateKind, "resourceclaimtemplates": TemplateKind,
	"class": ClassKind, "deviceclass": ClassKind, "deviceclasses": ClassKind,
	"podgroup": GroupKind, "podgroups": GroupKind,
	"node": NodeKind, "nodes": NodeKind, "no": NodeKind,
	"deviceattributes": AttributesKind, "devattr": AttributesKind,
	"placement": PlacementKind, "placements": PlacementKind,
}

// withoutGroup removes the API group of a kind.
func withoutGroup(kind string) string {
	for _, group := range []string{".resource.k8s.io", ".scheduling.k8s.io", ".celset.dev"} {
		kind = strings.TrimSuffix(kind, group)
	}
	return kind
}

// Split splits "kind/name" or "name". kind is one of the kinds, or empty if the argument has no kind.
func Split(argument string, kinds ...string) (kind, name string, err error) {
	before, name, found := strings.Cut(argument, "/")
	if !found {
		return "", argument, nil
	}
	kind = kindNames[withoutGroup(strings.ToLower(before))]
	if !slices.Contains(kinds, kind) || name == "" {
		return "", "", fmt.Errorf("%q: must be NAME or %s/NAME", argument, strings.Join(kinds, "/NAME, "))
	}
	return kind, name, nil
}

// Subject returns the pod, claim or template that an argument names. For an empty argument it returns the only pod of
// [Objects.Asked]. If there is no pod, it returns the only pending claim or template.
func (s *State) Subject(argument, namespace string) (*Subject, error) {
	if argument == "" {
		return s.onlySubject()
	}
	kind, name, err := Split(argument, PodKind, ClaimKind, TemplateKind)
	if err != nil {
		return nil, err
	}
	found := s.subjects(&s.Objects, func(k string, object metav1.Object) bool {
		return (kind == "" || k == kind) && object.GetName() == name && object.GetNamespace() == namespace
	})
	switch len(found) {
	case 0:
		return nil, fmt.Errorf("there is no pod, claim or template %q in namespace %q%s", argument, namespace, s.nearSubject(kind, name, namespace))
	case 1:
		return found[0]()
	default:
		return nil, fmt.Errorf("several objects have the name %q: write pod/%s, claim/%s or template/%s", name, name, name, name)
	}
}

// onlySubject returns the only pod with its claims. If there is no pod, it returns the only pending claim or template.
func (s *State) onlySubject() (*Subject, error) {
	found := s.subjects(s.Asked(), func(kind string, _ metav1.Object) bool { return kind == PodKind })
	if len(found) == 0 {
		found = s.subjects(s.Asked(), func(_ string, object metav1.Object) bool {
			claim, isClaim := object.(*resourceapi.ResourceClaim)
			return !isClaim || claim.Status.Allocation == nil
		})
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("there are %d pods, pending claims and templates: name one of them as pod/NAME, claim/NAME or template/NAME", len(found))
	}
	return found[0]()
}

func (s *State) subjects(of *Objects, wanted func(kind string, object metav1.Object) bool) []func() (*Subject, error) {
	var found []func() (*Subject, error)
	for _, pod := range of.Pods {
		if wanted(PodKind, pod) {
			found = append(found, func() (*Subject, error) { return s.SubjectOf(pod) })
		}
	}
	for _, claim := range of.Claims {
		if wanted(ClaimKind, claim) {
			found = append(found, func() (*Subject, error) {
				subject := &Subject{Claims: []*resourceapi.ResourceClaim{claim}}
				if claim.DeletionTimestamp != nil {
					subject.Refused = []string{podclaims.Deleted(claim).Error()}
				}
				return subject, nil
			})
		}
	}
	for _, template := range of.Templates {
		if wanted(TemplateKind, template) {
			claims := []*resourceapi.ResourceClaim{Instantiate(template, template.Name)}
			found = append(found, func() (*Subject, error) { return &Subject{Claims: claims, Made: claims}, nil })
		}
	}
	return found
}

// SubjectOf returns the subject for a pod. If only files were read, a missing claim or template is an error.
func (s *State) SubjectOf(pod *corev1.Pod) (*Subject, error) {
	subject := &Subject{Pod: pod}
	for i := range pod.Spec.ResourceClaims {
		if err := s.addClaim(subject, &pod.Spec.ResourceClaims[i]); err != nil {
			return nil, err
		}
	}
	extended, err := s.extendedClaim(pod)
	if extended != nil {
		subject.Claims = append(subject.Claims, extended)
	}
	return subject, err
}

// checker finds the claims of pods. It also accepts claims of PodGroups. If the feature gate DRAWorkloadResourceClaims is off,
// pods have no such claims.
var checker = podclaims.Checker{WorkloadClaims: true}

// addClaim adds the claim for an entry of spec.resourceClaims to the subject. It adds nothing if the entry needs no claim.
func (s *State) addClaim(subject *Subject, entry *corev1.PodResourceClaim) error {
	pod := subject.Pod
	claim, err := checker.Of(pod, entry, s.getClaim)
	switch {
	case errors.Is(err, resourceclaim.ErrClaimNotFound):
		template := find(s.Templates, pod.Namespace, *entry.ResourceClaimTemplateName)
		if template == nil {
			return s.missing(subject, fmt.Errorf("pod %s/%s: there is no ResourceClaimTemplate %q%s", pod.Namespace, pod.Name, *entry.ResourceClaimTemplateName,
				near(s.Templates, pod.Namespace, *entry.ResourceClaimTemplateName)))
		}
		claim = Instantiate(template, pod.Name+"-"+entry.Name)
		subject.Made = append(subject.Made, claim)
	case apierrors.IsNotFound(err):
		name, _, _ := resourceclaim.Name(pod, entry)
		return s.missing(subject, fmt.Errorf("pod %s/%s: there is no ResourceClaim %q%s", pod.Namespace, pod.Name, *name, near(s.Claims, pod.Namespace, *name)))
	case err != nil && claim == nil:
		return err
	case err != nil:
		subject.Refused = append(subject.Refused, err.Error())
	}
	if claim != nil {
		subject.Claims = append(subject.Claims, claim)
	}
	return nil
}

// missing records an error about an object that does not exist in a cluster. If only files were read, it returns the error
// instead, because the files may be incomplete.
func (s *State) missing(subject *Subject, err error) error {
	if !s.HasCluster {
		return err
	}
	if subject.Missing == nil {
		subject.Missing = err
	}
	return nil
}

func (s *State) getClaim(namespace, name string) (*resourceapi.ResourceClaim, error) {
	if claim := find(s.Claims, namespace, name); claim != nil {
		return claim, nil
	}
	return nil, apierrors.NewNotFound(resourceapi.Resource("resourceclaims"), name)
}

// near returns the suffix of a message that suggests an object with a similar name in the namespace.
func near[T metav1.Object](objects []T, namespace, name string) string {
	return nearest.DidYouMean("", name, func(yield func(string) bool) {
		for _, object := range objects {
			if object.GetNamespace() == namespace && !yield(object.GetName()) {
				return
			}
		}
	})
}

// nearSubject returns the suffix of a message that suggests a pod, claim or template with a similar name.
func (s *State) nearSubject(kind, name, namespace string) string {
	for _, of := range []struct{ kind, near string }{
		{PodKind, near(s.Pods, namespace, name)}, {ClaimKind, near(s.Claims, namespace, name)}, {TemplateKind, near(s.Templates, namespace, name)},
	} {
		if of.near != "" && (kind == "" || kind == of.kind) {
			return strings.Replace(of.near, `"`, `"`+of.kind+"/", 1)
		}
	}
	return ""
}

// NearGroup returns the suffix of a message that suggests a PodGroup with a similar name.
func (s *State) NearGroup(namespace, name string) string { return near(s.Groups, namespace, name) }

func find[T any, P interface {
	*T
	metav1.Object
}](objects []P, namespace, name string) P {
	for _, object := range objects {
		if object.GetNamespace() == namespace && object.GetName() == name {
			return object
		}
	}
	return nil
}

// Claim returns the claim with the name, or nil.
func (s *State) Claim(namespace, name string) *resourceapi.ResourceClaim {
	return find(s.Claims, namespace, name)
}

// Group returns the PodGroup with the name, or nil.
func (s *State) Group(namespace, name string) *schedulingapi.PodGroup {
	return find(s.Groups, namespace, name)
}

// GroupOf returns the PodGroup that a pod belongs to, or nil.
func (s *State) GroupOf(pod *corev1.Pod) *schedulingapi.PodGroup {
	if pod.Spec.SchedulingGroup == nil || pod.Spec.SchedulingGroup.PodGroupName == nil {
		return nil
	}
	return s.Group(pod.Namespace, *pod.Spec.SchedulingGroup.PodGroupName)
}

// Instantiate returns a claim with the given name, made from a template.
func Instantiate(template *resourceapi.ResourceClaimTemplate, name string) *resourceapi.ResourceClaim {
	return &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:   template.Namespace,
			Name:        name,
			Labels:      template.Spec.Labels,
			Annotations: template.Spec.Annotations,
		},
		Spec: *template.Spec.Spec.DeepCopy(),
	}
}
