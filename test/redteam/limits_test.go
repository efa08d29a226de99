// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package redteam

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/internal/serving"
	"github.com/celset/celset/test/internal/env"
)

// These shots create objects at the limits of the API: each expression has the maximum length, and all expressions are
// different. The harmless shots have the same number and length of expressions.

// texts returns the n-th of a series of different expressions.
type texts func(n int) string

// slowToCompile returns expressions with many calls, where the type of each call depends on the call before. disjuncts
// determines the length.
func slowToCompile(disjuncts int) texts {
	return func(n int) string {
		return fmt.Sprintf("%d == 1", n) + strings.Repeat("||1+1+1+1+1+1+1+1+1+1==1", disjuncts)
	}
}

// slowToRead returns an expression with many nested equalities, which takes long to analyse.
func slowToRead(n int) string {
	return fmt.Sprintf("%d >= 0", n) + strings.Repeat("==(['a'].map(x,1).exists(x,devices.all(d,d.driver=='a')))", 90)
}

// asLong returns harmless expressions that are as long as the given ones.
func asLong(as texts) texts {
	return func(n int) string {
		text := fmt.Sprintf("%d > 0", n+1)
		return text + strings.Repeat(" ", max(0, len(as(n))-len(text)))
	}
}

// atLimits returns shots that create objects with the maximum number of expressions.
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

// manyConstraints returns a shot that creates a pod with a claim of eight constraints.
func (l *lab) manyConstraints(name string, of texts, from int) shot {
	return l.podShot("limits/constraints/"+name, pod(unchecked, name, "celset-scheduler", name), claim(unchecked, name, 2, someOf(of, from, 8)...))
}

// checkedConstraints returns a shot that makes the webhook check a claim of 32 constraints.
func (l *lab) checkedConstraints(name string, of texts, from int) shot {
	object := claim(mallory, name, 2, someOf(of, from, 32)...)
	return shot{name: "limits/checked-constraints/" + name, fire: func(ctx context.Context) error {
		return l.mallory.Create(ctx, object.DeepCopy(), client.DryRunAll)
	}}
}

// manySelectors returns a shot that creates a pod with 16 claims of 256 selectors each.
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

// manyPredicates returns a shot that creates a Placement with twenty expressions.
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

// checkedPredicates returns a shot that makes the webhook check a Placement with twenty expressions.
func (l *lab) checkedPredicates(name string, of texts, from int) shot {
	object := placementOf(mallory, name, "true")
	object.Spec.Predicates[0].RequiredClusterSelector.CelSelector.CelExpressions = someOf(of, from, 20)
	return shot{name: "limits/checked-placement/" + name, fire: func(ctx context.Context) error {
		return l.mallory.Create(ctx, object.DeepCopy(), client.DryRunAll)
	}}
}

// debugged returns a shot that sends a Placement with twenty expressions to the debug address.
func debugged(debug *debugger, name string, of texts, from int) shot {
	object := placementOf(mallory, name, "true")
	object.Spec.Predicates[0].RequiredClusterSelector.CelSelector.CelExpressions = someOf(of, from, 14)
	body, err := yaml.Marshal(object)
	if err != nil {
		panic(err) // strings can always be marshalled
	}
	return shot{name: "limits/debug/" + name, fire: func(ctx context.Context) error {
		_, err := debug.ask(ctx, body)
		return err
	}}
}

// inNumbers returns shots that consist of many small objects or requests. The harmless shots have the same number and size.
func (l *lab) inNumbers(debug *debugger) []shot {
	var all []shot
	add := func(times int, make func(name string, harmless bool, from int) shot) {
		for range times {
			n := len(all)
			s, harmless := make(fmt.Sprintf("number-%d", n), false, 1000*n), make(fmt.Sprintf("harmless-number-%d", n), true, 1000*n)
			s.harmless = &harmless
			all = append(all, s)
		}
	}
	add(10, l.impossiblePods)
	add(6, l.shortLived)
	add(4, l.changing)
	add(6, l.manyVariables)
	for _, address := range []string{l.webhookAddress, debug.address} {
		add(2, func(name string, harmless bool, _ int) shot { return l.slowClients(address, name, harmless) })
	}
	return all
}

// textsOf returns expressions that are slow to compile. If harmless is set, it returns harmless expressions of the same length.
func textsOf(harmless bool) texts {
	slow := slowToCompile(100)
	if harmless {
		return asLong(slow)
	}
	return slow
}

// impossiblePods returns a shot that creates thirty pods that fit on no node, because of a constraint. If harmless is set, the
// reason is a node selector.
func (l *lab) impossiblePods(name string, harmless bool, from int) shot {
	const count = 30
	var pods []string
	for i := range count {
		pods = append(pods, fmt.Sprintf("%s-%d", name, i))
	}
	return shot{
		name: "numbers/impossible-pods/" + name,
		fire: func(ctx context.Context) error {
			for i, name := range pods {
				object := pod(unchecked, name, "celset-scheduler", name)
				if harmless {
					object = pod(unchecked, name, "celset-scheduler", "")
					object.Spec.NodeSelector = map[string]string{"no": "node"}
				} else if err := l.mallory.Create(ctx, claim(unchecked, name, 2, fmt.Sprintf("devices.all(d, d.driver == 'none-%d')", from+i))); err != nil {
					return err
				}
				if err := l.mallory.Create(ctx, object); err != nil {
					return err
				}
			}
			return nil
		},
		settled: l.podShot("", pod(unchecked, pods[count-1], "", ""), nil).settled,
		undo:    func(ctx context.Context) error { return l.remove(ctx, unchecked, pods...) },
	}
}

// shortLived returns a shot that creates and deletes pods and claims repeatedly.
func (l *lab) shortLived(name string, harmless bool, from int) shot {
	return shot{
		name: "numbers/short-lived/" + name,
		fire: func(ctx context.Context) error {
			for i := range 20 {
				one := fmt.Sprintf("%s-%d", name, i)
				c, p := claim(unchecked, one, 2, someOf(textsOf(harmless), from+16*i, 16)...), pod(unchecked, one, "celset-scheduler", one)
				if err := errors.Join(l.mallory.Create(ctx, c), l.mallory.Create(ctx, p)); err != nil {
					return err
				}
				if err := l.remove(ctx, unchecked, one); err != nil {
					return err
				}
			}
			return nil
		},
		undo: func(ctx context.Context) error {
			for i := range 20 {
				if err := l.remove(ctx, unchecked, fmt.Sprintf("%s-%d", name, i)); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// changing returns a shot that replaces the twenty expressions of a Placement forty times.
func (l *lab) changing(name string, harmless bool, from int) shot {
	object := placementOf(unchecked, name, "true")
	return shot{
		name: "numbers/changing/" + name,
		fire: func(ctx context.Context) error {
			live := object.DeepCopy()
			if err := l.mallory.Create(ctx, live); err != nil {
				return err
			}
			for i := range 40 {
				changed := live.DeepCopy()
				changed.Spec.Predicates[0].RequiredClusterSelector.CelSelector.CelExpressions = someOf(textsOf(harmless), from+20*i, 20)
				if err := l.mallory.Patch(ctx, changed, client.MergeFrom(live)); err != nil {
					return err
				}
				live = changed
			}
			return nil
		},
		undo: func(ctx context.Context) error {
			return client.IgnoreNotFound(l.admin.Delete(ctx, &clusterv1beta1.Placement{ObjectMeta: object.ObjectMeta}))
		},
	}
}

// manyVariables returns a shot that creates a pod with a claim of eight constraints, each with 24 variables.
func (l *lab) manyVariables(name string, harmless bool, from int) shot {
	c := claim(unchecked, name, 2)
	of := textsOf(true)
	if !harmless {
		of = slowToCompile(10)
	}
	for i := range 8 {
		id := fmt.Sprintf("c%d", i)
		parameters := map[string]any{"apiVersion": v1alpha1.SchemeGroupVersion.String(), "kind": v1alpha1.Kind, "name": id}
		var variables []map[string]string
		var sum []string
		for j := range 24 {
			variables = append(variables, map[string]string{"name": fmt.Sprintf("v%d", j), "expression": short(of(from + 24*i + j))})
			sum = append(sum, fmt.Sprintf("d.variables.v%d", j))
		}
		parameters["variables"], parameters["expression"] = variables, "devices.exists(d, "+strings.Join(sum, "||")+")"
		raw, err := json.Marshal(parameters)
		if err != nil {
			panic(err) // strings can always be marshalled
		}
		env.Refer(id)(&c.Spec.Devices)
		env.Configure(resourceapi.DeviceConfiguration{Opaque: &resourceapi.OpaqueDeviceConfiguration{
			Driver: v1alpha1.DriverName, Parameters: runtime.RawExtension{Raw: raw},
		}})(&c.Spec.Devices)
	}
	return l.podShot("numbers/variables/"+name, pod(unchecked, name, "celset-scheduler", name), c)
}

// short shortens an expression, so that 24 of them fit into the parameters of one constraint.
func short(text string) string { return text[:min(len(text), 270)] }

// slowClients returns a shot that opens sixty connections, starts a large request on each, and pauses for three seconds. It
// opens a hundred more connections without a request. If harmless is set, the requests are small and there is no pause.
func (l *lab) slowClients(address, name string, harmless bool) shot {
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	config := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}}
	return shot{name: "numbers/slow-clients/" + name, fire: func(ctx context.Context) error {
		var group errgroup.Group
		for i := range 160 {
			group.Go(func() error {
				conn, err := (&tls.Dialer{NetDialer: dialer, Config: config}).DialContext(ctx, "tcp", address)
				if err != nil {
					return err
				}
				defer func() { _ = conn.Close() }()
				switch {
				case harmless:
					_, err = fmt.Fprintf(conn, "GET /healthz HTTP/1.0\r\n\r\n")
					return err
				case i < 60:
					_, err = fmt.Fprintf(conn, "POST /validate-resourceclaims HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
						serving.MaxBody, strings.Repeat("x", serving.MaxBody-100<<10))
				}
				if err != nil {
					return err
				}
				select {
				case <-ctx.Done():
				case <-time.After(3 * time.Second):
				}
				return nil
			})
		}
		return group.Wait()
	}}
}
