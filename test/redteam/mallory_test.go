// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package redteam

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/test/internal/redteam"
)

const (
	// request is the time limit for each of mallory's requests.
	request = 5 * time.Second
	// together is the maximum number of mallory's concurrent requests.
	together = 8
)

// A shot is an attack: a case that is written to one place.
type shot struct {
	name string
	// fire writes the object. If the API server rejects it, that is no error.
	fire func(context.Context) error
	// settled reports whether the program has finished its work for the object. Nil means that the work is done when fire returns.
	settled func(context.Context) bool
	// undo deletes the object. Nil means that there is nothing to delete.
	undo func(context.Context) error
	// harmless is a shot with a harmless text in place of the case.
	harmless *shot
}

// shots returns a shot for each case and each place of the case.
func (l *lab) shots(debug *debugger) []shot {
	result := append(l.inNumbers(debug), l.atLimits(debug)...)
	for _, c := range redteam.Cases() {
		// The API server itself compiles selectors, so it must protect itself from slow compilations.
		if c.Attack == redteam.Compilation {
			c.Where &^= redteam.Selector
		}
		for _, where := range []redteam.Where{redteam.Device | redteam.Search, redteam.Selector, redteam.Cluster, redteam.Body, redteam.Report} {
			if !c.Is(where) {
				continue
			}
			harmless := l.shotsAt(where, ordinary(where, c.Name), debug)
			for i, s := range l.shotsAt(where, c, debug) {
				s.harmless = &harmless[i]
				result = append(result, s)
			}
		}
	}
	for _, c := range redteam.AsPreferences() {
		harmless := l.shotsAt(redteam.Preference, ordinary(redteam.Preference, c.Name), debug)
		for i, s := range l.shotsAt(redteam.Preference, c, debug) {
			s.harmless = &harmless[i]
			result = append(result, s)
		}
	}
	return result
}

// ordinary returns a case for a place that does no harm.
func ordinary(where redteam.Where, name string) redteam.Case {
	result := redteam.Case{Name: name, Reported: usual}
	switch where {
	case redteam.Selector:
		result.Text = "device.driver == '" + driver + "'"
	case redteam.Cluster, redteam.Report:
		result.Text = selects
	case redteam.Body:
		body, err := yaml.Marshal(placementOf(mallory, name, selects))
		if err != nil {
			panic(err) // strings can always be marshalled
		}
		result.Text = string(body)
	case redteam.Preference:
		result.Text = adjacent + " ? 1 : 0"
	default:
		result.Text = adjacent
	}
	return result
}

// shotsAt returns the shots for a case at one place.
func (l *lab) shotsAt(where redteam.Where, c redteam.Case, debug *debugger) []shot {
	switch where {
	case redteam.Selector:
		object, other := selecting(unchecked, c), selecting(unchecked, c)
		other.Name = "default-" + object.Name
		return []shot{
			l.podShot("selector/"+c.Name, pod(unchecked, object.Name, "celset-scheduler", object.Name), object),
			l.podShot("default-profile/"+c.Name, pod(unchecked, other.Name, "default-scheduler", other.Name), other),
		}
	case redteam.Cluster:
		return l.placementShots(c, debug)
	case redteam.Body:
		return []shot{{name: "body/" + c.Name, fire: func(ctx context.Context) error {
			_, err := debug.ask(ctx, []byte(c.Text))
			return err
		}}}
	case redteam.Report:
		return []shot{l.reportShot(c)}
	case redteam.Preference:
		object, checked := preferring(unchecked, c), preferring(mallory, c)
		return []shot{
			l.podShot("preference/"+c.Name, pod(unchecked, object.Name, "celset-scheduler", object.Name), object),
			{name: "checked-preference/" + c.Name, fire: func(ctx context.Context) error {
				return l.mallory.Create(ctx, checked.DeepCopy(), client.DryRunAll)
			}},
		}
	default:
		checked, urgentClaim := claimOf(mallory, c), claimOf(unchecked, c)
		urgentClaim.Name = "evicting-" + c.Name
		return []shot{
			l.podShot("claim/"+c.Name, pod(unchecked, c.Name, "celset-scheduler", c.Name), claimOf(unchecked, c)),
			l.evictingShot(evicting+c.Name, urgentClaim),
			{name: "checked-claim/" + c.Name, fire: func(ctx context.Context) error {
				return l.mallory.Create(ctx, checked.DeepCopy(), client.DryRunAll)
			}},
		}
	}
}

// podShot returns a shot that creates a pod and its claim in a namespace without the webhook.
func (l *lab) podShot(name string, object *corev1.Pod, claim client.Object) shot {
	return shot{
		name: name,
		fire: func(ctx context.Context) error {
			if err := l.mallory.Create(ctx, claim.DeepCopyObject().(client.Object)); err != nil {
				return err
			}
			return l.mallory.Create(ctx, object.DeepCopy())
		},
		settled: func(ctx context.Context) bool {
			live := &corev1.Pod{}
			if err := l.admin.Get(ctx, client.ObjectKeyFromObject(object), live); err != nil {
				return client.IgnoreNotFound(err) == nil // the claim is missing if the API server has rejected it
			}
			return live.Spec.NodeName != "" || slices.ContainsFunc(live.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodScheduled })
		},
		undo: func(ctx context.Context) error { return l.remove(ctx, unchecked, object.Name) },
	}
}

// placementShots returns three shots: a Placement in a namespace without the webhook, a Placement that the webhook checks, and
// a request to the debug address.
func (l *lab) placementShots(c redteam.Case, debug *debugger) []shot {
	object := placementOf(unchecked, c.Name, c.Text)
	checked := placementOf(mallory, c.Name, c.Text)
	body, err := yaml.Marshal(checked)
	if err != nil {
		panic(err) // strings can always be marshalled
	}
	return []shot{
		{
			name: "placement/" + c.Name,
			fire: func(ctx context.Context) error { return l.mallory.Create(ctx, object.DeepCopy()) },
			settled: func(ctx context.Context) bool {
				live := &clusterv1beta1.Placement{}
				if err := l.admin.Get(ctx, client.ObjectKeyFromObject(object), live); err != nil {
					return client.IgnoreNotFound(err) == nil
				}
				return len(live.Status.Conditions) > 0
			},
			undo: func(ctx context.Context) error { return client.IgnoreNotFound(l.admin.Delete(ctx, object.DeepCopy())) },
		},
		{name: "checked-placement/" + c.Name, fire: func(ctx context.Context) error {
			return l.mallory.Create(ctx, checked.DeepCopy(), client.DryRunAll)
		}},
		{name: "debug/" + c.Name, fire: func(ctx context.Context) error {
			_, err := debug.ask(ctx, body)
			return err
		}},
	}
}

// reportShot returns a shot that makes a managed cluster report the values of the case. Placements of mallory and of other
// users read the values.
func (l *lab) reportShot(c redteam.Case) shot {
	object := placementOf(unchecked, c.Name, c.Text)
	if c.Text == "" {
		object.Spec.Predicates = nil
	}
	return shot{
		name: "report/" + c.Name,
		fire: func(ctx context.Context) error {
			if err := l.report(ctx, c.Reported); err != nil {
				return err
			}
			return l.mallory.Create(ctx, object.DeepCopy())
		},
		settled: func(context.Context) bool { return true },
		undo: func(ctx context.Context) error {
			return errors.Join(l.report(ctx, usual), client.IgnoreNotFound(l.admin.Delete(ctx, object.DeepCopy())))
		},
	}
}

// usual is the report that the managed cluster has between shots.
var usual = redteam.Reported{Allocatable: map[string]string{"cpu": "7500m", "memory": "250Gi"}}

// report writes the report of the first managed cluster. It sends the report as text, because decoding it into Go types may
// take forever.
func (l *lab) report(ctx context.Context, reported redteam.Reported) error {
	claims := []map[string]string{}
	for name, value := range reported.Claims {
		claims = append(claims, map[string]string{"name": name, "value": value})
	}
	status := map[string]any{"clusterClaims": claims}
	if reported.Allocatable != nil {
		status["allocatable"] = reported.Allocatable
	}
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return err
	}
	const path = "/apis/cluster.open-cluster-management.io/v1/managedclusters/cluster-00000"
	if err := l.patches.Patch(types.MergePatchType).AbsPath(path + "/status").Body(patch).Do(ctx).Error(); err != nil {
		return err
	}
	// The programs keep these annotations, because they are short enough.
	patch, err = json.Marshal(map[string]any{"metadata": map[string]any{"annotations": reported.Annotations}})
	if err != nil || len(reported.Annotations) == 0 {
		return err
	}
	return l.patches.Patch(types.MergePatchType).AbsPath(path).Body(patch).Do(ctx).Error()
}

// A volley is the result of firing several shots.
type volley struct {
	refused int32
	settled bool
	took    time.Duration
}

// fire fires the shots, and waits until the programs have finished their work for them. It waits only up to a time limit.
func fire(ctx context.Context, shots []shot) volley {
	start := time.Now()
	var result volley
	var group errgroup.Group
	group.SetLimit(together)
	for _, s := range shots {
		group.Go(func() error {
			within, cancel := context.WithTimeout(ctx, request)
			defer cancel()
			if err := s.fire(within); err != nil {
				atomic.AddInt32(&result.refused, 1)
			}
			return nil
		})
	}
	_ = group.Wait()
	waiting := slices.DeleteFunc(slices.Clone(shots), func(s shot) bool { return s.settled == nil })
	for end := time.Now().Add(request); len(waiting) > 0 && time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		waiting = slices.DeleteFunc(waiting, func(s shot) bool { return s.settled(ctx) })
	}
	// Wait so that alice's probes can measure the delay.
	time.Sleep(500 * time.Millisecond)
	result.settled, result.took = len(waiting) == 0, time.Since(start)
	return result
}

func undo(ctx context.Context, shots []shot) error {
	var group errgroup.Group
	group.SetLimit(together)
	for _, s := range shots {
		if s.undo != nil {
			group.Go(func() error { return s.undo(ctx) })
		}
	}
	return group.Wait()
}

// harmless returns the harmless shot of each shot.
func harmless(shots []shot) []shot {
	var result []shot
	for _, s := range shots {
		result = append(result, *s.harmless)
	}
	return result
}

func names(shots []shot) string {
	var result []string
	for _, s := range shots {
		result = append(result, s.name)
	}
	if len(result) > 4 {
		result = append(result[:2:2], "...", result[len(result)-1])
	}
	return strings.Join(result, " ")
}

// shared returns annotations that many cases read. All clusters have them from the start, so that their memory does not count
// as caused by a case.
func shared() map[string]string {
	result := map[string]string{}
	for _, c := range redteam.On(redteam.Cluster) {
		maps.Copy(result, c.Reported.Annotations)
	}
	return result
}
