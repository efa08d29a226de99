// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"context"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
)

// A choice says how many pods of each kind a node gets. The pods of a kind are interchangeable for the expression, but their
// numbers matter to the workload: consecutive pods should be neighbors. Seats therefore assigns the pods in this order:
//
//  1. The pods of each kind are sorted by their number ([ComparePods]).
//  2. If the expression divides nodes into segments (device.Segments), consecutive pods belong to one segment: pods 0 to 7, pods
//     8 to 15, and so on. A pod whose segment already runs on nodes with some key gets a node with this key.
//  3. The other segments get keys in the order of the nodes. A key is suitable if enough nodes with the key are left.
//  4. All other pods get the remaining nodes in order.
//
// If pods of the group run already, the nodes may not allow such an assignment. The search then tries the next set (keepsSegments). If
// the numbers of the pods have gaps, for example because some pods have completed, segments of pods have other sizes than segments of
// nodes. If no set keeps such segments together, the search takes a set that does not (chooseFor).

// Seats assigns the waiting pods of each kind to the members of a choice. The result has, for each kind, the index of the member
// of each pod in Waiting. Pods beyond the choice get no member.
func (s *Search) Seats(ctx context.Context, c *Choice) [][]int {
	return s.seat(c, s.segments(ctx, c)).seats
}

func (s *Search) seat(c *Choice, segments []segmentsOf) *seating {
	t := &seating{search: s, choice: c, seats: make([][]int, len(s.Kinds)), left: make([]Load, len(c.Members))}
	for i, m := range c.Members {
		t.left[i] = slices.Clone(m.Load)
	}
	for kind, count := range c.Kinds {
		t.seats[kind] = slices.Repeat([]int{-1}, count)
	}
	for _, of := range segments {
		t.seatSegments(of)
	}
	for kind := range t.seats {
		for i, seat := range t.seats[kind] {
			if seat < 0 {
				t.take(kind, i, func(int) bool { return true })
			}
		}
	}
	return t
}

// keepsSegments reports whether the pods can be assigned to the members so that the pods of each segment stay together. It ignores
// segments whose running pods are apart already.
func (s *Search) keepsSegments(ctx context.Context, c *Choice) bool {
	segments := s.segments(ctx, c)
	if len(segments) == 0 {
		return true
	}
	t := s.seat(c, segments)
	for _, of := range segments {
		all := t.segmentsIn(of)
		for _, segment := range all {
			running, waiting := map[string]bool{}, map[string]bool{}
			for _, pod := range segment {
				if pod.member >= 0 {
					running[of.members[pod.member].Key] = true
				} else {
					waiting[of.members[t.seats[pod.kind][pod.index]].Key] = true
				}
			}
			if len(running) > 1 || len(waiting) == 0 {
				continue
			}
			maps.Copy(running, waiting)
			if len(running) > 1 {
				s.segmented.hasGaps = s.segmented.hasGaps || !areWhole(all, of.size)
				return false
			}
		}
	}
	return true
}

// areWhole reports whether all segments except the last have the size.
func areWhole(segments [][]ranked, size int) bool {
	return !slices.ContainsFunc(segments[:len(segments)-1], func(segment []ranked) bool { return len(segment) != size })
}

// segmented describes how expressions divide nodes into segments.
type segmented struct {
	// calls holds the calls of the function segments, and reads the properties that expressions read. Both are set by the method calls.
	calls []device.Segments
	reads reading
	// hasGaps is true if a set was refused although its segments of pods are smaller than its segments of nodes. tears is true if the
	// search permits such sets.
	hasGaps, tears bool
}

// segmentsOf holds the members of a choice in the list of a call of the function segments.
type segmentsOf struct {
	size    int
	members []device.SegmentMember
}

// dividesRunning reports whether pods of the group run already and the expression divides nodes into segments.
func (s *Search) dividesRunning(ctx context.Context) bool {
	return !s.segmented.tears && s.placed() > 0 && len(s.Waiting) > 0 && len(s.calls(ctx)) > 0
}

// calls returns the calls of the function segments. With several pods on a node there are no segments of pods.
func (s *Search) calls(ctx context.Context) []device.Segments {
	if s.podsPerNode() > 1 || s.segmented.calls != nil {
		return s.segmented.calls
	}
	s.segmented.calls = []device.Segments{}
	problem, err := NewProblem(s.Group, 0, 1)
	if err != nil {
		return nil
	}
	prepared, err := s.Compiled(ctx, problem)
	if err != nil {
		return nil
	}
	s.segmented.reads = readingOf(prepared.Expressions())
	for _, expression := range prepared.Expressions() {
		s.segmented.calls = append(s.segmented.calls, expression.Segments()...)
	}
	return s.segmented.calls
}

// segments returns the segments that the expression divides the members into. It returns nil if a part of the expression fails.
func (s *Search) segments(ctx context.Context, c *Choice) (all []segmentsOf) {
	calls := s.calls(ctx)
	if len(calls) == 0 {
		return nil
	}
	devices := s.devicesOf(c)
	for i := range calls {
		members, err := calls[i].Members(ctx, devices, cel.NewBudget(allocator.DefaultBudget().Cost))
		if err != nil {
			return nil
		}
		all = append(all, segmentsOf{int(calls[i].Size), members})
	}
	return all
}

// devicesOf returns the members of a choice as expressions see them, without the devices of pods.
func (s *Search) devicesOf(c *Choice) []*device.Device {
	devices := make([]*device.Device, len(c.Members))
	for i, of := range c.Members {
		n := &s.Nodes[of.Node]
		m := member{node: of.Node, load: of.Load, properties: s.segmented.reads.ofNode(n)}
		if s.ReadsPods {
			(&Problem{Group: s.Group}).addPods(&m, n)
		}
		devices[i] = device.New(device.NodeDriver, &resourceapi.Device{Attributes: m.attributes, Capacity: m.capacity})
	}
	return devices
}

// seating assigns pods to the members of a choice.
type seating struct {
	search *Search
	choice *Choice
	// seats has, for each kind and pod, the index of the member, or -1.
	seats [][]int
	// left holds, for each member, the number of pods of each kind that it still gets.
	left []Load
}

// take assigns a pod to the first member that still gets a pod of this kind and is suitable.
func (t *seating) take(kind, pod int, suitable func(member int) bool) bool {
	for i, left := range t.left {
		if left[kind] > 0 && suitable(i) {
			left[kind]--
			t.seats[kind][pod] = i
			return true
		}
	}
	return false
}

// ranked is a pod of a list that is divided into segments. member is the index of its member if the pod runs already, or -1.
type ranked struct {
	*v1.Pod
	kind, index int
	member      int
}

// seatSegments assigns the pods of the members in the list, one segment after the other.
func (t *seating) seatSegments(of segmentsOf) {
	var others, torn [][]ranked
	for _, segment := range t.segmentsIn(of) {
		switch key, keys := of.running(segment); keys {
		case 0:
			others = append(others, segment)
		case 1:
			t.seatSegment(of, segment, key)
		default:
			torn = append(torn, segment)
		}
	}
	for _, segment := range others {
		for i := range t.choice.Members {
			if of.members[i].InList && t.hasSeats(of, segment, of.members[i].Key) {
				t.seatSegment(of, segment, of.members[i].Key)
				break
			}
		}
	}
	// Segments that are apart already must not take the nodes of others.
	for _, segment := range torn {
		key, _ := of.running(segment)
		t.seatSegment(of, segment, key)
	}
}

// running returns the key of the first pod of a segment that runs, and the number of different keys of running pods.
func (of *segmentsOf) running(segment []ranked) (first string, count int) {
	keys := map[string]bool{}
	for _, pod := range segment {
		if pod.member < 0 {
			continue
		}
		key := of.members[pod.member].Key
		if len(keys) == 0 {
			first = key
		}
		keys[key] = true
	}
	return first, len(keys)
}

// segmentsIn divides the pods of the list by their index. If a pod has no index, or several pods have the same index, it divides
// them by their order.
func (t *seating) segmentsIn(of segmentsOf) (segments [][]ranked) {
	pods, numbers := t.podsIn(of), map[int64]bool{}
	number := func(i int) int64 {
		index, _ := IndexOf(pods[i].Pod)
		return index
	}
	for i := range pods {
		if index, ok := IndexOf(pods[i].Pod); ok {
			numbers[index] = true
		}
	}
	if len(numbers) < len(pods) {
		number = func(i int) int64 { return int64(i) }
	}
	last := int64(-1)
	for i := range pods {
		segment := number(i) / int64(of.size)
		if segment != last {
			segments = append(segments, nil)
		}
		last = segment
		segments[len(segments)-1] = append(segments[len(segments)-1], pods[i])
	}
	return segments
}

// podsIn returns the pods of the list in order: the pods that run on members of the list, and the pods of kinds that only members
// of the list get.
func (t *seating) podsIn(of segmentsOf) (pods []ranked) {
	waiting, outside := t.search.Waiting, make(Load, len(t.seats))
	for i, m := range t.choice.Members {
		if !of.members[i].InList {
			for kind, count := range m.Load {
				outside[kind] += count
			}
			continue
		}
		for _, pod := range t.search.Nodes[m.Node].Pods {
			pods = append(pods, ranked{pod, -1, -1, i})
		}
	}
	for kind, seats := range t.seats {
		for i := range seats {
			if outside[kind] == 0 && kind < len(waiting) && i < len(waiting[kind]) {
				pods = append(pods, ranked{waiting[kind][i], kind, i, -1})
			}
		}
	}
	slices.SortFunc(pods, func(a, b ranked) int { return ComparePods(a.Pod, b.Pod) })
	return pods
}

// hasSeats reports whether the members with the key still get the pods of a segment.
func (t *seating) hasSeats(of segmentsOf, segment []ranked, key string) bool {
	free, total := make(Load, len(t.seats)), 0
	for i, left := range t.left {
		if of.members[i].InList && of.members[i].Key == key {
			for kind, count := range left {
				free[kind] += count
				total += count
			}
		}
	}
	for _, pod := range segment {
		if free[pod.kind]--; free[pod.kind] < 0 {
			return false
		}
	}
	// A segment that is smaller than the others must not take the place of a whole one.
	return len(segment) == of.size || total%of.size == len(segment)
}

// seatSegment assigns the waiting pods of a segment to members with the key, as far as such members are left.
func (t *seating) seatSegment(of segmentsOf, segment []ranked, key string) {
	for _, pod := range segment {
		if pod.member < 0 && t.seats[pod.kind][pod.index] < 0 {
			t.take(pod.kind, pod.index, func(i int) bool { return of.members[i].InList && of.members[i].Key == key })
		}
	}
}
