// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/celset/celset/apis/celset/v1alpha1"
	configv1alpha1 "github.com/celset/celset/apis/config/v1alpha1"
)

// A constraint that holds by default does so only where this plugin is asked, and nothing in a
// class or a pod shows whether it is. So the class has an event: whether its defaults hold, and in
// which profiles. It is for whoever makes the class, who never sees the pods.
//
// Events are found by a name that follows from what they say and of which version of the class.
// So there is one for each change, however many replicas of the scheduler there are and however
// often they start.

// Reasons of events of classes.
const (
	defaultsHold    = "DefaultConstraintsHold"
	defaultsIgnored = "DefaultConstraintsIgnored"
	defaultsInvalid = "DefaultConstraintsInvalid"
)

const (
	// noticeTries is how often an event is tried to be written.
	noticeTries = 5
	// maxNote is what the API server takes.
	maxNote = 1024
)

// classNotices writes the events, for all profiles of a scheduler.
type classNotices struct {
	enabled bool
	client  kubernetes.Interface
	get     func(name string) (*resourceapi.DeviceClass, error)
	queue   workqueue.TypedRateLimitingInterface[string]

	// mutex guards what follows.
	mutex sync.Mutex
	// holding and ignoring are the names of the profiles.
	holding, ignoring []string
}

// addProfile is called for all profiles before informers start.
func (n *classNotices) addProfile(name string, mode configv1alpha1.AllocatorMode) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if mode == configv1alpha1.AllocatorUpstream {
		n.ignoring = append(n.ignoring, name)
	} else {
		n.holding = append(n.holding, name)
	}
}

// watch begins to look at classes, until the context ends.
func (n *classNotices) watch(ctx context.Context, client kubernetes.Interface, factory informers.SharedInformerFactory) error {
	classes := factory.Resource().V1().DeviceClasses()
	n.client, n.get = client, classes.Lister().Get
	n.queue = workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Second, time.Minute))
	_, err := classes.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { n.add(nil, object) },
		UpdateFunc: n.add,
	})
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, n.queue.ShutDown)
	go func() {
		for n.next(ctx) {
		}
	}()
	return nil
}

func (n *classNotices) add(before, object any) {
	class, ok := object.(*resourceapi.DeviceClass)
	if !ok || !v1alpha1.HasDefaults(class) {
		return
	}
	if old, ok := before.(*resourceapi.DeviceClass); ok && old.Generation == class.Generation && old.UID == class.UID {
		return
	}
	n.queue.Add(class.Name)
}

// next writes the event of one class. It is false when there will be no more.
func (n *classNotices) next(ctx context.Context) bool {
	name, over := n.queue.Get()
	if over {
		return false
	}
	defer n.queue.Done(name)
	err := n.write(ctx, name)
	switch {
	case err == nil, apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err):
		n.queue.Forget(name)
	case n.queue.NumRequeues(name) < noticeTries:
		n.queue.AddRateLimited(name)
	default:
		n.queue.Forget(name)
		klog.FromContext(ctx).Error(err, "No event for the default constraints of a class", "deviceClass", name)
	}
	return true
}

func (n *classNotices) write(ctx context.Context, name string) error {
	class, err := n.get(name)
	if err != nil || !v1alpha1.HasDefaults(class) {
		return err
	}
	_, err = n.client.EventsV1().Events(metav1.NamespaceDefault).Create(ctx, n.event(class), metav1.CreateOptions{})
	return err
}

func (n *classNotices) event(class *resourceapi.DeviceClass) *eventsv1.Event {
	kind, reason, note := n.notice(class)
	if len(note) > maxNote {
		note = strings.ToValidUTF8(note[:maxNote-4], "") + " ..."
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %s", class.UID, class.Generation, note))
	instance, err := os.Hostname()
	if err != nil || instance == "" {
		instance = Name
	}
	return &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceDefault,
			Name:      class.Name[:min(len(class.Name), 200)] + "." + hex.EncodeToString(sum[:8]),
		},
		EventTime:           metav1.NowMicro(),
		ReportingController: "celset.dev/" + Name,
		ReportingInstance:   instance[:min(len(instance), 128)],
		Action:              "Scheduling",
		Type:                kind,
		Reason:              reason,
		Note:                note,
		Regarding: v1.ObjectReference{
			APIVersion: resourceapi.SchemeGroupVersion.String(), Kind: "DeviceClass",
			Name: class.Name, UID: class.UID, ResourceVersion: class.ResourceVersion,
		},
	}
}

// notice is what there is to say.
func (n *classNotices) notice(class *resourceapi.DeviceClass) (kind, reason, note string) {
	n.mutex.Lock()
	holding, ignoring := slices.Sorted(slices.Values(n.holding)), slices.Sorted(slices.Values(n.ignoring))
	n.mutex.Unlock()
	definitions, err := v1alpha1.ClassDefaults(class)
	var names []string
	for _, definition := range definitions {
		names = append(names, fmt.Sprintf("%s of %s", definition.Name, definition.Source.Field))
	}
	constraints := strings.Join(names, ", ")
	switch {
	case !n.enabled:
		return v1.EventTypeWarning, defaultsIgnored, fmt.Sprintf("The default constraints of the class (%s) do not hold, because the feature gate %s is disabled: "+
			"pods get any devices of the class, as from a scheduler without celset", constraints, DRACELDeviceConstraint)
	case len(holding) == 0:
		return v1.EventTypeWarning, defaultsIgnored, fmt.Sprintf("The default constraints of the class (%s) do not hold: no profile of the scheduler applies them, "+
			"because all have allocator: Upstream", constraints)
	case err != nil:
		return v1.EventTypeWarning, defaultsInvalid, fmt.Sprintf("Pods of the profiles %s that request several devices of the class wait until its defaults are mended: %v",
			strings.Join(holding, ", "), err)
	}
	note = fmt.Sprintf("Each request of the class for several devices is held to %s, for pods of the profiles %s", constraints, strings.Join(holding, ", "))
	if len(ignoring) > 0 {
		return v1.EventTypeWarning, defaultsHold, note + fmt.Sprintf("; the profiles %s have allocator: Upstream and ignore it, as other schedulers do", strings.Join(ignoring, ", "))
	}
	return v1.EventTypeNormal, defaultsHold, note + "; other schedulers ignore it"
}
