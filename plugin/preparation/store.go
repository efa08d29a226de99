// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package preparation

import (
	"context"
	"fmt"
	"slices"
	"sync"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	plfeature "k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/allocator/explain"
	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cel/memo"
)

// preparedBytes is the maximum size in bytes of all prepared claims. A claim with typical expressions takes about 10 KiB.
const preparedBytes = 128 << 20

// Store keeps prepared claims for all profiles of a scheduler. It is safe for concurrent use.
type Store struct {
	*allocator.Preparer
	// Environment compiles constraints.
	Environment *device.Environment
	claims      claimGetter
	classes     fwk.DeviceClassLister
	memory      *memo.Memory
	prepared    *memo.Memo[preparedKey, *allocator.PreparedClaim]
	contents    *memo.Memo[versionsKey, content]

	// mutex guards generation.
	mutex sync.Mutex
	// generation is the generation of the selector set that all stored claims were prepared with. The Preparer counts its sets.
	generation uint64
}

// versionsKey identifies a claim together with its classes. The spec of a claim never changes, so the prepared claim only
// depends on the versions of the classes.
type versionsKey struct {
	claim types.UID
	// classes contains the resource versions of all classes that the claim uses.
	classes string
}

// content is a key that is equal for claims with equal contents, such as claims from one template. ok is false if the claim has
// no such key.
type content struct {
	allocator.Content
	ok bool
}

// preparedKey is the key of a stored claim.
type preparedKey struct {
	// content identifies the claim by its content. It is zero if own identifies the claim.
	content allocator.Content
	own     versionsKey
	// selectors is the generation of the selector set that the claim was prepared with.
	selectors uint64
	// constraints is set if the claim's constraints and preferences were compiled, too.
	constraints bool
}

// claimGetter returns the current version of a claim to prepare.
type claimGetter interface {
	Get(namespace, name string) (*resourceapi.ResourceClaim, error)
}

// NewStore returns a store for the claims and classes of a manager. observer observes the compilation of their expressions.
func NewStore(features plfeature.Features, manager fwk.SharedDRAManager, observer cel.Observer) (*Store, error) {
	environment, err := device.NewEnvironment(cel.Config{Observer: observer})
	if err != nil {
		return nil, err
	}
	preparer, err := allocator.NewPreparer(environment, SelectorFeatures(features))
	if err != nil {
		return nil, err
	}
	return NewStoreOf(preparer, environment, latest{manager}, latestClasses{manager}, preparedBytes), nil
}

// latest and latestClasses ask the manager for its lists at each call. An autoscaler's manager has new lists in each loop, and
// no lists yet when the plugin is created.
type (
	latest        struct{ manager fwk.SharedDRAManager }
	latestClasses struct{ manager fwk.SharedDRAManager }
)

func (l latest) Get(namespace, name string) (*resourceapi.ResourceClaim, error) {
	return l.manager.ResourceClaims().Get(namespace, name)
}

func (l latestClasses) Get(name string) (*resourceapi.DeviceClass, error) {
	return l.manager.DeviceClasses().Get(name)
}

func (l latestClasses) List() ([]*resourceapi.DeviceClass, error) {
	return l.manager.DeviceClasses().List()
}

// NewStoreOf returns a store that reads claims and classes from the given sources. bytes is its maximum size.
func NewStoreOf(preparer *allocator.Preparer, environment *device.Environment, claims claimGetter, classes fwk.DeviceClassLister, bytes int64) *Store {
	memory := memo.New(bytes)
	return &Store{
		memory: memory, Preparer: preparer, Environment: environment, claims: claims, classes: classes,
		prepared: memo.In(memory, func(key preparedKey, c **allocator.PreparedClaim) memo.Size {
			size := (*c).Size()
			size.Bytes += len(key.own.classes)
			return size
		}),
		contents: memo.In(memory, func(key versionsKey, _ *content) memo.Size { return memo.Size{Bytes: 256 + len(key.classes)} }),
	}
}

// SelectorFeatures returns those feature gates that affect device selectors.
func SelectorFeatures(features plfeature.Features) dracel.Features {
	return dracel.Features{
		EnableConsumableCapacity: features.EnableDRAConsumableCapacity,
		EnableListTypeAttributes: features.EnableDRAListTypeAttributes,
	}
}

func (p *Store) version(class string) string {
	return allocator.VersionOf(p.classes.Get(class))
}

// View is the Store as one profile uses it.
type View struct {
	*Store
	// Constraints is set if the profile evaluates constraints and preferences.
	Constraints bool
}

// Find looks up prepared claims. missing lists the claims that need preparation but are not prepared.
func (v View) Find(claims []*resourceapi.ResourceClaim) (prepared allocator.Prepared, missing []*resourceapi.ResourceClaim) {
	// Each class is read once, so that all claims are looked up for the same version of the class.
	versions := map[string]string{}
	version := func(name string) string {
		read, known := versions[name]
		if !known {
			read = v.version(name)
			versions[name] = read
		}
		return read
	}
	for _, claim := range claims {
		if !allocator.NeedsPreparation(claim, v.Constraints) {
			continue
		}
		c := v.look(claim, version)
		if c == nil {
			missing = append(missing, claim)
			continue
		}
		if prepared == nil {
			prepared = allocator.Prepared{}
		}
		prepared[claim.UID] = c
	}
	return prepared, missing
}

// MayHave implements [Claims]. It compiles nothing.
func (v View) MayHave(claim *resourceapi.ResourceClaim, drivers []string) bool {
	c := v.look(claim, v.version)
	return c == nil || slices.ContainsFunc(drivers, c.MayHave)
}

// look returns the prepared form of the claim, or of a claim with the same content. It returns nil if there is no such form.
func (v View) look(claim *resourceapi.ResourceClaim, version func(class string) string) *allocator.PreparedClaim {
	versions := versionsKey{claim.UID, allocator.ClassVersions(claim, version)}
	keys := []preparedKey{{own: versions, selectors: v.Generation(), constraints: v.Constraints}}
	common := v.contents.Get(versions, func() content { return newContent(claim, v.classes) })
	if common.ok {
		keys = append(keys, preparedKey{content: common.Content, selectors: v.Generation(), constraints: v.Constraints})
	}
	for _, key := range keys {
		if entry := v.prepared.Has(key); entry != nil {
			if c := entry.Look(); c != nil {
				return *c
			}
		}
	}
	return nil
}

func newContent(claim *resourceapi.ResourceClaim, classes structured.DeviceClassLister) content {
	sum, ok := allocator.ContentOf(claim, classes)
	return content{sum, ok}
}

// ContentOf returns a key that is equal for claims with equal contents, such as claims from one template. The key is cached.
func (p *Store) ContentOf(claim *resourceapi.ResourceClaim, classes fwk.DeviceClassLister) (common allocator.Content, ok bool) {
	versions := versionsKey{claim.UID, allocator.ClassVersions(claim, func(name string) string { return allocator.VersionOf(classes.Get(name)) })}
	found := p.contents.Get(versions, func() content { return newContent(claim, classes) })
	return found.Content, found.ok
}

// Keep prepares a claim and stores the prepared claim.
func (v View) Keep(ctx context.Context, claim *resourceapi.ResourceClaim) (*allocator.PreparedClaim, error) {
	c, err := v.Prepare(ctx, claim, v.classes, v.Constraints)
	if err != nil {
		return nil, fmt.Errorf("prepare claim %s: %w", klog.KObj(claim), err)
	}
	if v.Constraints {
		// Prepare has already recorded the mistakes in the claim, so an error counts only if ctx is done.
		if err := explain.Prepare(ctx, v.Environment, claim, v.classes); ctx.Err() != nil {
			return nil, err
		}
	}
	if v.isCurrent(c) {
		key := preparedKey{selectors: c.Generation(), constraints: v.Constraints}
		if sum, ok := c.Content(); ok && c.IsFlawless() {
			key.content = sum
		} else {
			key.own = versionsKey{claim.UID, allocator.ClassVersions(claim, c.ClassVersion)}
		}
		c, _, err = v.prepared.At(key).Find(ctx, func() (*allocator.PreparedClaim, error) { return c, nil })
	}
	return c, err
}

// isCurrent reports whether a claim was prepared with the Preparer's current selector set. If the Preparer has replaced its
// set, isCurrent first drops all stored claims, because they would keep the selectors of the old set in memory.
func (p *Store) isCurrent(c *allocator.PreparedClaim) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if now := p.Generation(); now != p.generation {
		p.generation = now
		p.memory.Forget()
	}
	return c.Generation() == p.generation
}
