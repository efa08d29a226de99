// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package podprocess

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// serviceKey is one port of a Service.
type serviceKey struct {
	uid  types.UID
	port int32
}

// service is where one is reached.
type service struct {
	listener net.Listener
	passed   sync.WaitGroup
}

func (s *service) close() {
	_ = s.listener.Close()
	s.passed.Wait()
}

// syncServices listens at the addresses of the Services that select pods.
func (r *Runner) syncServices(ctx context.Context) error {
	services, err := r.client.CoreV1().Services(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	present := map[serviceKey]bool{}
	for i := range services.Items {
		object := &services.Items[i]
		if len(object.Spec.Selector) == 0 {
			continue
		}
		for _, port := range object.Spec.Ports {
			key := serviceKey{object.UID, port.Port}
			present[key] = true
			if r.services[key] != nil {
				continue
			}
			address := net.JoinHostPort(object.Spec.ClusterIP, strconv.Itoa(int(port.Port)))
			listener, err := net.Listen("tcp", address)
			if err != nil {
				return fmt.Errorf("service %s/%s: %w", object.Namespace, object.Name, err)
			}
			s := &service{listener: listener}
			r.services[key] = s
			forward(ctx, listener, &s.passed, func(ctx context.Context) (net.Conn, error) { return r.dialService(ctx, object, port.TargetPort) })
		}
	}
	for key, s := range r.services {
		if !present[key] {
			s.close()
			delete(r.services, key)
		}
	}
	return nil
}

// dialService connects to a pod of the Service that is ready.
func (r *Runner) dialService(ctx context.Context, object *corev1.Service, target intstr.IntOrString) (net.Conn, error) {
	selector := labels.SelectorFromSet(object.Spec.Selector).String()
	pods, err := r.client.CoreV1().Pods(object.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, err
	}
	for i := range pods.Items {
		p := r.pod(pods.Items[i].UID)
		if p == nil || pods.Items[i].DeletionTimestamp != nil || !isReady(&pods.Items[i]) {
			continue
		}
		port := target.IntVal
		if target.Type == intstr.String {
			var found bool
			if port, found = p.port(target.StrVal); !found {
				continue
			}
		}
		return p.dial(ctx, net.JoinHostPort(p.address, strconv.Itoa(int(port))))
	}
	return nil, fmt.Errorf("no pod of service %s/%s is ready", object.Namespace, object.Name)
}

func isReady(object *corev1.Pod) bool {
	for _, condition := range object.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}
