// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package pendingwrites

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	typed "k8s.io/client-go/kubernetes/typed/resource/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/scheduler/util/assumecache"
)

var claimsResource = schema.GroupResource{Group: "resource.k8s.io", Resource: "resourceclaims"}

// fate decides how the server handles the next write.
type fate int

const (
	told fate = iota
	// answerLost executes the write, and the response is lost.
	answerLost
	// requestLate loses the response, and may execute the write later.
	requestLate
	conflict
	throttled
	refused
	notSent
	fates
)

// server models an API server with claims by name, optimistic locking, and events for watches.
type server struct {
	version int
	stored  map[string]*resourceapi.ResourceClaim
	// late has the writes that may be executed later.
	late []*resourceapi.ResourceClaim
	// told has the events for watches in order. An event with a claim without UID is the deletion of that claim.
	told []*resourceapi.ResourceClaim
	next fate
	// readFails is the number of reads that fail next. fences decides how updates of metadata are handled.
	readFails, gets, writes int
	fences                  fate
	// meanwhile is called once before the next response arrives. It may be nil.
	meanwhile func()
}

// client returns a client that calls meanwhile before each response.
func (s *server) client() kubernetes.Interface { return lateClient{s.prompt(), s} }

type lateClient struct {
	kubernetes.Interface
	server *server
}

func (c lateClient) ResourceV1() typed.ResourceV1Interface {
	return lateGroup{c.Interface.ResourceV1(), c.server}
}

type lateGroup struct {
	typed.ResourceV1Interface
	server *server
}

func (g lateGroup) ResourceClaims(namespace string) typed.ResourceClaimInterface {
	return lateClaims{g.ResourceV1Interface.ResourceClaims(namespace), g.server}
}

type lateClaims struct {
	typed.ResourceClaimInterface
	server *server
}

func (c lateClaims) Get(ctx context.Context, name string, opts metav1.GetOptions) (*resourceapi.ResourceClaim, error) {
	defer c.server.goOn()
	return c.ResourceClaimInterface.Get(ctx, name, opts)
}

func (c lateClaims) List(ctx context.Context, opts metav1.ListOptions) (*resourceapi.ResourceClaimList, error) {
	defer c.server.goOn()
	return c.ResourceClaimInterface.List(ctx, opts)
}

func (c lateClaims) UpdateStatus(ctx context.Context, claim *resourceapi.ResourceClaim, opts metav1.UpdateOptions) (*resourceapi.ResourceClaim, error) {
	defer c.server.goOn()
	return c.ResourceClaimInterface.UpdateStatus(ctx, claim, opts)
}

// goOn calls meanwhile and removes it.
func (s *server) goOn() {
	if happens := s.meanwhile; happens != nil {
		s.meanwhile = nil
		happens()
	}
}

func (s *server) prompt() *fake.Clientset {
	client := &fake.Clientset{}
	client.AddReactor("*", "resourceclaims", func(action clienttesting.Action) (bool, runtime.Object, error) {
		switch action := action.(type) {
		case clienttesting.UpdateAction:
			sent := action.GetObject().(*resourceapi.ResourceClaim)
			if action.GetSubresource() != "status" {
				got, err := s.fenced(sent)
				return true, got, err
			}
			got, err := s.write(sent)
			return true, got, err
		case clienttesting.GetAction:
			got, err := s.get(action.GetName())
			return true, got, err
		default:
			got, err := s.list()
			return true, got, err
		}
	})
	return client
}

func (s *server) read() error {
	if s.readFails > 0 {
		s.readFails--
		return io.ErrUnexpectedEOF
	}
	return nil
}

func (s *server) get(name string) (*resourceapi.ResourceClaim, error) {
	s.gets++
	if err := s.read(); err != nil {
		return nil, err
	}
	if s.stored[name] == nil {
		return nil, apierrors.NewNotFound(claimsResource, name)
	}
	return s.stored[name].DeepCopy(), nil
}

func (s *server) list() (*resourceapi.ResourceClaimList, error) {
	all := &resourceapi.ResourceClaimList{}
	if err := s.read(); err != nil {
		return all, err // the client reads its items
	}
	for _, claim := range s.stored {
		all.Items = append(all.Items, *claim.DeepCopy())
	}
	return all, nil
}

func (s *server) write(sent *resourceapi.ResourceClaim) (*resourceapi.ResourceClaim, error) {
	s.writes++
	how := s.next
	s.next = told
	switch how {
	case answerLost:
		_, _ = s.apply(sent)
		return nil, io.ErrUnexpectedEOF
	case requestLate:
		s.late = append(s.late, sent.DeepCopy())
		return nil, apierrors.NewTimeoutError("etcd is slow", 0)
	case conflict:
		return nil, apierrors.NewConflict(claimsResource, sent.Name, nil)
	case throttled:
		return nil, apierrors.NewTooManyRequests("later", 1)
	case notSent:
		return nil, fmt.Errorf("put: %w", errNotSent)
	case refused:
		return nil, apierrors.NewForbidden(claimsResource, sent.Name, nil)
	default:
		return s.apply(sent)
	}
}

// fenced handles an update of a claim's metadata as fences says.
func (s *server) fenced(sent *resourceapi.ResourceClaim) (*resourceapi.ResourceClaim, error) {
	switch s.fences {
	case told:
		return s.apply(sent)
	case answerLost:
		_, _ = s.apply(sent)
	}
	return nil, io.ErrUnexpectedEOF
}

// apply stores a claim if its version is the stored version. Otherwise it returns a conflict.
func (s *server) apply(sent *resourceapi.ResourceClaim) (*resourceapi.ResourceClaim, error) {
	before := s.stored[sent.Name]
	switch {
	case before == nil:
		return nil, apierrors.NewNotFound(claimsResource, sent.Name)
	case before.ResourceVersion != sent.ResourceVersion:
		return nil, apierrors.NewConflict(claimsResource, sent.Name, nil)
	}
	return s.store(sent), nil
}

func (s *server) store(claim *resourceapi.ResourceClaim) *resourceapi.ResourceClaim {
	s.version++
	stored := claim.DeepCopy()
	stored.ResourceVersion = strconv.Itoa(s.version)
	s.stored[claim.Name] = stored
	s.told = append(s.told, stored)
	return stored.DeepCopy()
}

// create stores a new claim.
func (s *server) create(name string) *resourceapi.ResourceClaim {
	claim := named(name)
	claim.UID = types.UID(fmt.Sprint(name, "-", s.version))
	claim.Finalizers = []string{"example.com/other", resourceapi.Finalizer}
	return s.store(claim)
}

func (s *server) remove(name string) {
	delete(s.stored, name)
	s.told = append(s.told, named(name))
}

func named(name string) *resourceapi.ResourceClaim {
	return &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
}

// known is a scheduler's list of claims, which may be older than the server's.
type known struct {
	claims map[string]*resourceapi.ResourceClaim
	// told has the claims that the watch delivered. claims may also have claims that the scheduler assumed after a write.
	told cache.Indexer
	// listed has the devices in use as upstream counts them, in one set for all claims. A claim adds its devices when it gets them
	// and removes them when it loses them.
	listed sets.Set[string]
	// heard is the number of events received so far.
	heard int
}

func newKnown() *known {
	return &known{claims: map[string]*resourceapi.ResourceClaim{}, told: cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{}), listed: sets.New[string]()}
}

// Get implements [Tracker].
func (k *known) Get(_, name string) (*resourceapi.ResourceClaim, error) {
	if claim := k.claims[name]; claim != nil {
		return claim, nil
	}
	return nil, assumecache.ErrNotFound
}

// AssumeClaimAfterAPICall implements [Tracker].
func (k *known) AssumeClaimAfterAPICall(claim *resourceapi.ResourceClaim) error {
	before := k.claims[claim.Name]
	if before == nil {
		return assumecache.ErrNotFound
	}
	if versionOf(before) > versionOf(claim) {
		return fmt.Errorf("%s is out of sync", claim.Name)
	}
	k.put(claim)
	return nil
}

func (k *known) put(claim *resourceapi.ResourceClaim) {
	before := devicesOf(k.claims[claim.Name])
	k.claims[claim.Name] = claim
	switch after := devicesOf(claim); {
	case before == nil && after != nil:
		k.listed.Insert(after...)
	case before != nil && after == nil:
		k.listed.Delete(before...)
	}
}

func (k *known) drop(name string) {
	k.listed.Delete(devicesOf(k.claims[name])...)
	delete(k.claims, name)
	_ = k.told.Delete(named(name))
}

// hear receives the next event of the server.
func (k *known) hear(s *server) {
	if k.heard == len(s.told) {
		return
	}
	event := s.told[k.heard]
	k.heard++
	before := k.claims[event.Name]
	switch {
	case event.UID == "":
		k.drop(event.Name)
		return
	case before == nil, versionOf(before) < versionOf(event):
		k.put(event)
	}
	_ = k.told.Update(event)
}

// relist receives all stored claims and then all deletions, as an informer does after a gap in its watch.
func (k *known) relist(s *server) {
	k.heard = len(s.told)
	for _, name := range slices.Sorted(maps.Keys(s.stored)) {
		claim := s.stored[name]
		if before := k.claims[name]; before == nil || versionOf(before) < versionOf(claim) {
			k.put(claim)
		}
		_ = k.told.Update(claim)
	}
	for name := range maps.Clone(k.claims) {
		if s.stored[name] == nil {
			k.drop(name)
		}
	}
}

// devicesOf returns the devices of a claim, or nil.
func devicesOf(claim *resourceapi.ResourceClaim) []string {
	if claim == nil || claim.Status.Allocation == nil {
		return nil
	}
	return namesOf(claim.Status.Allocation.Devices.Results)
}

func versionOf(claim *resourceapi.ResourceClaim) int {
	version, err := strconv.Atoi(claim.ResourceVersion)
	if err != nil {
		panic(err)
	}
	return version
}

// with returns a copy of the claim with devices.
func with(claim *resourceapi.ResourceClaim, devices ...string) *resourceapi.ResourceClaim {
	claim = claim.DeepCopy()
	claim.Status.Allocation = &resourceapi.AllocationResult{}
	for _, device := range devices {
		claim.Status.Allocation.Devices.Results = append(claim.Status.Allocation.Devices.Results,
			resourceapi.DeviceRequestAllocationResult{Request: "r", Driver: "d", Pool: "p", Device: device})
	}
	return claim
}

func namesOf(results []resourceapi.DeviceRequestAllocationResult) []string {
	var names []string
	for _, result := range results {
		names = append(names, result.Device)
	}
	slices.Sort(names)
	return names
}
