// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package redteam

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/internal/testing/env"
)

// Objects at the limits of the API: each expression is allowed, or as long as one may be, and no two are the
// same. The harmless ones are as many and as long.

// texts are expressions that differ by a number.
type texts func(n int) string

// slowToCompile has many calls whose types depend on what was found out before: those of the length that is
// allowed now, and of the one that was.
func slowToCompile(disjuncts int) texts {
	return func(n int) string {
		return fmt.Sprintf("%d == 1", n) + strings.Repeat("||1+1+1+1+1+1+1+1+1+1==1", disjuncts)
	}
}

// slowToRead has many equalities, each of which has another one in it.
func slowToRead(n int) string {
	return fmt.Sprintf("%d >= 0", n) + strings.Repeat("==(['a'].map(x,1).exists(x,devices.all(d,d.driver=='a')))", 90)
}

// asLong are as long as others.
func asLong(as texts) texts {
	return func(n int) string {
		text := fmt.Sprintf("%d > 0", n+1)
		return text + strings.Repeat(" ", max(0, len(as(n))-len(text)))
	}
}

// atLimits are shots of as many expressions as objects may have.
func (l *lab) atLimits(debug *debugger) []shot {
	var all []shot
	number := 0
	add := func(times int, of texts, make func(name string, of texts, from int) shot) {
		for range times {
			name := fmt.Sprintf("limits-%d", number)
			s, harmless := make(name, of, 1000*number), make("harmless-"+name, asLong(of), 1000*number)
			s.harmless = &harmless
			all = append(all, s)
			number++
		}
	}
	for _, of := range []texts{slowToCompile(100), slowToCompile(250)} {
		add(8, of, l.manyConstraints)
		add(8, of, l.checkedConstraints)
		add(5, of, l.manyPredicates)
		add(5, of, l.checkedPredicates)
		add(12, of, func(name string, of texts, from int) shot { return debugged(debug, name, of, from) })
	}
	add(8, slowToRead, l.manyConstraints)
	add(4, func(n int) string {
		return fmt.Sprintf("device.driver != 'n%d' && ", n) + strings.Repeat("device.driver != 'x' && ", 8) + "true"
	}, l.manySelectors)
	return all
}

func someOf(of texts, from, count int) []string {
	var result []string
	for i := range count {
		result = append(result, of(from+i))
	}
	return result
}

// manyConstraints is a pod with a claim of eight constraints.
func (l *lab) manyConstraints(name string, of texts, from int) shot {
	return l.podShot("limits/constraints/"+name, pod(unchecked, name, "celset-scheduler", name), claim(unchecked, name, 2, someOf(of, from, 8)...))
}

// checkedConstraints has the webhook look at a claim of 32 constraints.
func (l *lab) checkedConstraints(name string, of texts, from int) shot {
	object := claim(mallory, name, 2, someOf(of, from, 32)...)
	return shot{name: "limits/checked-constraints/" + name, fire: func(ctx context.Context) error {
		return l.mallory.Create(ctx, object.DeepCopy(), client.DryRunAll)
	}}
}

// manySelectors is a pod with 16 claims of 256 selectors each.
func (l *lab) manySelectors(name string, of texts, from int) shot {
	object := pod(unchecked, name, "celset-scheduler", "")
	var claims []*resourceapi.ResourceClaim
	for i := range 16 {
		c := claim(unchecked, fmt.Sprintf("%s-%d", name, i), 1)
		request := c.Spec.Devices.Requests[0]
		c.Spec.Devices.Requests = nil
		for j := range 8 {
			r := *request.DeepCopy()
			r.Name = fmt.Sprintf("r%d", j)
			for _, text := range someOf(of, from+256*i+32*j, 32) {
				r.Exactly.Selectors = append(r.Exactly.Selectors, env.Selector(text))
			}
			c.Spec.Devices.Requests = append(c.Spec.Devices.Requests, r)
		}
		claims = append(claims, c)
		object.Spec.ResourceClaims = append(object.Spec.ResourceClaims, corev1.PodResourceClaim{Name: fmt.Sprint("c", i), ResourceClaimName: &c.Name})
	}
	s := l.podShot("limits/selectors/"+name, object, claims[0])
	s.fire = func(ctx context.Context) error {
		for _, c := range claims {
			if err := l.mallory.Create(ctx, c.DeepCopy()); err != nil {
				return err
			}
		}
		return l.mallory.Create(ctx, object.DeepCopy())
	}
	s.undo = func(ctx context.Context) error {
		names := []string{name}
		for _, c := range claims {
			names = append(names, c.Name)
		}
		return l.remove(ctx, unchecked, names...)
	}
	return s
}

// manyPredicates is a Placement with twenty expressions.
func (l *lab) manyPredicates(name string, of texts, from int) shot {
	object := placementOf(unchecked, name, "true")
	object.Spec.Predicates[0].RequiredClusterSelector.CelSelector.CelExpressions = someOf(of, from, 20)
	return shot{
		name: "limits/placement/" + name,
		fire: func(ctx context.Context) error { return l.mallory.Create(ctx, object.DeepCopy()) },
		undo: func(ctx context.Context) error {
			return client.IgnoreNotFound(l.admin.Delete(ctx, object.DeepCopy()))
		},
	}
}

// checkedPredicates has the webhook look at such a Placement.
func (l *lab) checkedPredicates(name string, of texts, from int) shot {
	object := placementOf(mallory, name, "true")
	object.Spec.Predicates[0].RequiredClusterSelector.CelSelector.CelExpressions = someOf(of, from, 20)
	return shot{name: "limits/checked-placement/" + name, fire: func(ctx context.Context) error {
		return l.mallory.Create(ctx, object.DeepCopy(), client.DryRunAll)
	}}
}

// debugged has such a Placement explained.
func debugged(debug *debugger, name string, of texts, from int) shot {
	object := placementOf(mallory, name, "true")
	object.Spec.Predicates[0].RequiredClusterSelector.CelSelector.CelExpressions = someOf(of, from, 14)
	body, err := yaml.Marshal(object)
	if err != nil {
		panic(err) // strings always can be marshalled
	}
	return shot{name: "limits/debug/" + name, fire: func(ctx context.Context) error {
		_, err := debug.ask(ctx, body)
		return err
	}}
}
