// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package webhook runs the checks of package admission in a webhook server. The server may have other webhooks:
//
//	err := webhook.Register(server, checker, webhook.Readers{Cached: cache, Live: live})
package webhook

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/celset/celset/admission"
	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/cel/fairness"
)

// Paths of the webhooks that [Register] registers.
const (
	ClaimPath    = "/validate-resourceclaims"
	TemplatePath = "/validate-resourceclaimtemplates"
	ClassPath    = "/validate-deviceclasses"
	PodPath      = "/validate-pods"
	GroupPath    = "/validate-podgroups"
	// AttributesPath is the path for DeviceAttributes objects.
	AttributesPath = "/validate-deviceattributes"
)

const (
	// maxErrors is the maximum number of errors in an answer.
	maxErrors = 20
	// readTimeout is the maximum wait for the cache, and again for the API server. The API server itself waits for the answer: in
	// the manifests 5 s for claims and 3 s for pods.
	readTimeout = 2 * time.Second
	// maxJudged is the number of objects checked at a time, each for a different tenant. maxWaiting is the maximum number of waiting
	// objects of one tenant.
	maxJudged, maxWaiting = 64, 64
)

// Readers read device classes and the claims of pods.
type Readers struct {
	// Cached may be slightly stale. Device classes are read from it first.
	Cached client.Reader
	// Live reads from the API server. It reads device classes again before an object is rejected because of a class. It also reads
	// the claims and templates of pods, and the claims and templates that refer to a constraint removed from a class.
	Live client.Reader
}

// Register registers the webhooks at the paths of a server.
func Register(server webhook.Server, checker *admission.Checker, readers Readers) error {
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), resourceapi.AddToScheme(scheme), schedulingapi.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return fmt.Errorf("admission of CEL device constraints: %w", err)
	}
	turns := fairness.NewTurns(maxJudged, maxWaiting)
	server.Register(ClaimPath, ctrladmission.WithValidator(scheme, validator[*resourceapi.ResourceClaim]{
		kind: resourceKind("ResourceClaim"), turns: turns,
		spec: func(claim *resourceapi.ResourceClaim) any { return &claim.Spec },
		check: func(ctx context.Context, claim *resourceapi.ResourceClaim) (admission.Verdict, error) {
			return readers.judge(ctx, func(classes *classGetter) (admission.Verdict, error) { return checker.Claim(ctx, claim, classes) })
		},
	}))
	server.Register(TemplatePath, ctrladmission.WithValidator(scheme, validator[*resourceapi.ResourceClaimTemplate]{
		kind: resourceKind("ResourceClaimTemplate"), turns: turns,
		spec: func(template *resourceapi.ResourceClaimTemplate) any { return &template.Spec },
		check: func(ctx context.Context, template *resourceapi.ResourceClaimTemplate) (admission.Verdict, error) {
			return readers.judge(ctx, func(classes *classGetter) (admission.Verdict, error) { return checker.Template(ctx, template, classes) })
		},
	}))
	server.Register(ClassPath, ctrladmission.WithValidator(scheme, classValidator{live: readers.Live, validator: validator[*resourceapi.DeviceClass]{
		kind: resourceKind("DeviceClass"), turns: turns,
		spec:  func(class *resourceapi.DeviceClass) any { return &class.Spec },
		check: checker.Class,
	}}))
	server.Register(GroupPath, ctrladmission.WithValidator(scheme, validator[*schedulingapi.PodGroup]{
		kind: schema.GroupKind{Group: schedulingapi.GroupName, Kind: "PodGroup"}, turns: turns,
		spec: relevant,
		check: func(ctx context.Context, group *schedulingapi.PodGroup) (admission.Verdict, error) {
			return readers.group(ctx, checker, group)
		},
	}))
	server.Register(AttributesPath, ctrladmission.WithValidator(scheme, validator[*v1alpha1.DeviceAttributes]{
		kind: schema.GroupKind{Group: v1alpha1.GroupName, Kind: v1alpha1.DeviceAttributesKind}, turns: turns,
		spec:  func(object *v1alpha1.DeviceAttributes) any { return &object.Spec },
		check: checker.DeviceAttributes,
	}))
	server.Register(PodPath, ctrladmission.WithValidator(scheme, podValidator{checker, readers.Live, fairness.NewTurns(maxJudged, maxWaiting)}))
	return nil
}

func resourceKind(kind string) schema.GroupKind {
	return schema.GroupKind{Group: resourceapi.GroupName, Kind: kind}
}

// classGetter reads device classes for one answer, each once, so that constraints and preferences use the same version.
type classGetter struct {
	ctx    context.Context
	reader client.Reader
	byName map[string]classRead
}

// classRead is a class, or the error of reading it.
type classRead struct {
	*resourceapi.DeviceClass
	err error
}

// Get implements v1alpha1.ClassGetter.
func (g *classGetter) Get(name string) (*resourceapi.DeviceClass, error) {
	if read, known := g.byName[name]; known {
		return read.DeviceClass, read.err
	}
	var read classRead
	class := &resourceapi.DeviceClass{}
	if read.err = g.reader.Get(g.ctx, client.ObjectKey{Name: name}, class); read.err == nil {
		read.DeviceClass = class
	}
	g.byName[name] = read
	return read.DeviceClass, read.err
}

// judge checks with the cache first. If the result is an error or undecided, judge checks again with classes from the API server.
// A class is often created or corrected just before the claim that needs it.
func (r Readers) judge(ctx context.Context, check func(*classGetter) (admission.Verdict, error)) (admission.Verdict, error) {
	verdict, asked, err := judgeWith(ctx, r.Cached, check)
	if err != nil || !asked || len(verdict.Errors) == 0 && !verdict.Undecided {
		return verdict, err
	}
	verdict, _, err = judgeWith(ctx, r.Live, check)
	return verdict, err
}

func judgeWith(ctx context.Context, reader client.Reader, check func(*classGetter) (admission.Verdict, error)) (verdict admission.Verdict, asked bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	classes := &classGetter{ctx: ctx, reader: reader, byName: map[string]classRead{}}
	verdict, err = check(classes)
	return verdict, len(classes.byName) > 0, err
}

// validator is the webhook for a kind of object. It compares spec to detect whether an update changed the specification.
type validator[T client.Object] struct {
	kind  schema.GroupKind
	turns *fairness.Turns
	spec  func(T) any
	check func(context.Context, T) (admission.Verdict, error)
}

// judge checks an object when it is the tenant's turn. The tenant is the namespace of the object, or the user for a class.
func (v validator[T]) judge(ctx context.Context, object T) (admission.Verdict, error) {
	tenant := ""
	if request, err := ctrladmission.RequestFromContext(ctx); err == nil {
		tenant = "user " + request.UserInfo.Username
		if request.Namespace != "" {
			tenant = "namespace " + request.Namespace
		}
	}
	end, err := v.turns.Take(ctx, tenant)
	switch {
	case errors.Is(err, fairness.ErrTooMany):
		return admission.Verdict{}, apierrors.NewTooManyRequests(fmt.Sprintf("%d objects of %s are waiting for the webhook; try again", maxWaiting, tenant), 1)
	case err != nil:
		return admission.Verdict{}, fmt.Errorf("wait for the webhook: %w", err)
	}
	defer end()
	return v.check(fairness.WithTenant(ctx, tenant), object)
}

func (v validator[T]) ValidateCreate(ctx context.Context, object T) (ctrladmission.Warnings, error) {
	verdict, err := v.judge(ctx, object)
	if err != nil {
		return nil, err
	}
	return v.answer(object, verdict)
}

func (v validator[T]) ValidateUpdate(ctx context.Context, old, object T) (ctrladmission.Warnings, error) {
	if object.GetDeletionTimestamp() != nil || equality.Semantic.DeepEqual(v.spec(old), v.spec(object)) {
		return nil, nil
	}
	before, err := v.judge(ctx, old)
	if err != nil {
		return nil, err
	}
	after, err := v.judge(ctx, object)
	if err != nil {
		return nil, err
	}
	return v.answer(object, admission.Ratcheted(before, after))
}

// ValidateDelete allows every deletion.
func (validator[T]) ValidateDelete(context.Context, T) (ctrladmission.Warnings, error) {
	return nil, nil
}

// answer returns an error with the reason Invalid, as if the API server's own validation had found the mistakes.
func (v validator[T]) answer(object T, verdict admission.Verdict) (ctrladmission.Warnings, error) {
	if len(verdict.Errors) == 0 {
		return verdict.Warnings, nil
	}
	errs := verdict.Errors[:min(maxErrors, len(verdict.Errors))]
	if n := len(verdict.Errors) - len(errs); n > 0 {
		errs = append(errs[:len(errs):len(errs)], field.Invalid(field.NewPath("spec"), field.OmitValueType{}, fmt.Sprintf("there are %d more mistakes", n)))
	}
	return verdict.Warnings, apierrors.NewInvalid(v.kind, object.GetName(), errs)
}

// podValidator returns warnings about pods. It allows every pod.
type podValidator struct {
	checker *admission.Checker
	live    client.Reader
	turns   *fairness.Turns
}

func (v podValidator) ValidateCreate(ctx context.Context, pod *corev1.Pod) (ctrladmission.Warnings, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	namespace := namespaceOf(ctx, pod)
	// Pods take turns by namespace, so that one namespace can't delay the others. If too many pods wait, there is no warning.
	end, err := v.turns.Take(ctx, namespace)
	if err != nil {
		return nil, nil
	}
	defer end()
	return v.checker.Pod(pod,
		func(name string) *resourceapi.ResourceClaim {
			return read(ctx, v.live, namespace, name, &resourceapi.ResourceClaim{})
		},
		func(name string) *resourceapi.ResourceClaimTemplate {
			return read(ctx, v.live, namespace, name, &resourceapi.ResourceClaimTemplate{})
		}), nil
}

// namespaceOf returns the namespace of the request, because an object that is being created may lack its namespace.
func namespaceOf(ctx context.Context, object client.Object) string {
	if request, err := ctrladmission.RequestFromContext(ctx); err == nil {
		return request.Namespace
	}
	return object.GetNamespace()
}

// read returns nil if the object can't be read. Then there is no warning.
func read[T client.Object](ctx context.Context, from client.Reader, namespace, name string, into T) T {
	var none T
	if ctx.Err() != nil || from.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, into) != nil {
		return none
	}
	return into
}

// ValidateUpdate does nothing, because the scheduler name of a pod can't be changed.
func (podValidator) ValidateUpdate(context.Context, *corev1.Pod, *corev1.Pod) (ctrladmission.Warnings, error) {
	return nil, nil
}

// ValidateDelete allows every deletion.
func (podValidator) ValidateDelete(context.Context, *corev1.Pod) (ctrladmission.Warnings, error) {
	return nil, nil
}
