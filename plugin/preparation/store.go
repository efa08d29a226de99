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

// preparedBytes bounds what is kept. A claim with usual expressions takes some 10 KiB.
const preparedBytes = 128 << 20

// Store keeps what was prepared of claims, for all profiles of a scheduler. It is safe for concurrent use.
type Store struct {
	*allocator.Preparer
	// Environment is that of constraints.
	Environment *device.Environment
	claims      claimGetter
	classes     fwk.DeviceClassLister
	memory      *memo.Memory
	known       *memo.Memo[preparedKey, *allocator.PreparedClaim]
	contents    *memo.Memo[versionsKey, content]

	// mutex guards what follows.
	mutex sync.Mutex
	// generation is that of the selectors of what is kept.
	generation uint64
}

// versionsKey is all that the content of a claim depends on: its specification never changes.
type versionsKey struct {
	claim types.UID
	// classes are the versions of those that the claim uses.
	classes string
}

// content is what a claim has in common with others, such as those of a template. ok: it is known.
type content struct {
	allocator.Content
	ok bool
}

// preparedKey is all that what is prepared depends on.
type preparedKey struct {
	// content is nothing for claims that stand for themselves, own for those that don't.
	content allocator.Content
	own     versionsKey
	// selectors are those of the Preparer.
	selectors uint64
	// constraints: its constraints and preferences were compiled, too.
	constraints bool
}

// claimGetter has the claims that are prepared.
type claimGetter interface {
	Get(namespace, name string) (*resourceapi.ResourceClaim, error)
}

// NewStore returns a store for the claims of a manager, whose expressions are compiled for observer to see.
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

// latest and latestClasses ask the manager for its lists at each use: that of an autoscaler has others in each loop, and none yet
// when the plugin is made.
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

// NewStoreOf returns a store of some bytes for the claims of a getter.
func NewStoreOf(preparer *allocator.Preparer, environment *device.Environment, claims claimGetter, classes fwk.DeviceClassLister, bytes int64) *Store {
	memory := memo.New(bytes)
	return &Store{
		memory: memory, Preparer: preparer, Environment: environment, claims: claims, classes: classes,
		known: memo.In(memory, func(key preparedKey, c **allocator.PreparedClaim) memo.Size {
			size := (*c).Size()
			size.Bytes += len(key.own.classes)
			return size
		}),
		contents: memo.In(memory, func(key versionsKey, _ *content) memo.Size { return memo.Size{Bytes: 256 + len(key.classes)} }),
	}
}

// SelectorFeatures returns the feature gates of device selectors.
func SelectorFeatures(features plfeature.Features) dracel.Features {
	return dracel.Features{
		EnableConsumableCapacity: features.EnableDRAConsumableCapacity,
		EnableListTypeAttributes: features.EnableDRAListTypeAttributes,
	}
}

func (p *Store) version(class string) string {
	return allocator.VersionOf(p.classes.Get(class))
}

// View is what was prepared as one profile needs it.
type View struct {
	*Store
	// constraints: constraints and preferences of claims matter in the profile.
	Constraints bool
}

// Find returns what was prepared of the claims that need it. missing are the other claims.
func (v View) Find(claims []*resourceapi.ResourceClaim) (prepared allocator.Prepared, missing []*resourceapi.ResourceClaim) {
	// Each class is read once: what is used together was prepared with the same.
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

// MayHave reports whether a claim may get devices of some drivers, as far as that was prepared. It only looks up.
func (v View) MayHave(claim *resourceapi.ResourceClaim, drivers []string) bool {
	c := v.look(claim, v.version)
	return c == nil || slices.ContainsFunc(drivers, c.MayHave)
}

// look returns what was prepared of the claim, or of one that asks for the same.
func (v View) look(claim *resourceapi.ResourceClaim, version func(class string) string) *allocator.PreparedClaim {
	versions := versionsKey{claim.UID, allocator.ClassVersions(claim, version)}
	keys := []preparedKey{{own: versions, selectors: v.Generation(), constraints: v.Constraints}}
	common := v.contents.Get(versions, func() content { return newContent(claim, v.classes) })
	if common.ok {
		keys = append(keys, preparedKey{content: common.Content, selectors: v.Generation(), constraints: v.Constraints})
	}
	for _, key := range keys {
		if entry := v.known.Has(key); entry != nil {
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

// ContentOf returns what a claim has in common with others, such as those of a template. It is found out once.
func (p *Store) ContentOf(claim *resourceapi.ResourceClaim, classes fwk.DeviceClassLister) (common allocator.Content, ok bool) {
	versions := versionsKey{claim.UID, allocator.ClassVersions(claim, func(name string) string { return allocator.VersionOf(classes.Get(name)) })}
	found := p.contents.Get(versions, func() content { return newContent(claim, classes) })
	return found.Content, found.ok
}

// Keep prepares a claim, and keeps the result.
func (v View) Keep(ctx context.Context, claim *resourceapi.ResourceClaim) (*allocator.PreparedClaim, error) {
	c, err := v.Prepare(ctx, claim, v.classes, v.Constraints)
	if err != nil {
		return nil, fmt.Errorf("prepare claim %s: %w", klog.KObj(claim), err)
	}
	if v.Constraints {
		// Mistakes are those that the claim has already.
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
		c, _, err = v.known.At(key).Find(ctx, func() (*allocator.PreparedClaim, error) { return c, nil })
	}
	return c, err
}

// isCurrent reports whether a claim is worth being kept. When there is a new generation of selectors all that is of
// the former is dropped: it would keep those selectors in memory.
func (p *Store) isCurrent(c *allocator.PreparedClaim) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if now := p.Generation(); now != p.generation {
		p.generation = now
		p.memory.Forget()
	}
	return c.Generation() == p.generation
}
