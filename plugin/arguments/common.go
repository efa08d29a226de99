// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package arguments

import (
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configv1alpha1 "github.com/celset/celset/apis/config/v1alpha1"
)

// Common holds the arguments that apply to the whole scheduler. Any profile may set them, but two profiles must not set
// different values. Common rejects that: if the first profile's value won, inserting a new first profile would change the value
// silently.
type Common struct {
	share    stated[configv1alpha1.Share]
	backOff  stated[configv1alpha1.BackOff]
	interval stated[metav1.Duration]
	// allocates is set if at least one profile uses celset's allocator.
	allocates bool
}

// Add adds the arguments of a profile.
func (c *Common) Add(profile string, args *configv1alpha1.DynamicResourcesCELArgs) error {
	if err := c.share.add(profile, "share", args.Share); err != nil {
		return err
	}
	if err := c.backOff.add(profile, "backOff", args.BackOff); err != nil {
		return err
	}
	if err := c.interval.add(profile, "fragmentationInterval", args.FragmentationInterval); err != nil {
		return err
	}
	c.allocates = c.allocates || args.Allocator != configv1alpha1.AllocatorUpstream
	return nil
}

// Share returns the share of the scheduler's time that each namespace gets.
func (c *Common) Share() *configv1alpha1.Share { return c.share.or(configv1alpha1.DefaultShare) }

// BackOff returns the limits of the back-off of claims whose attempts took too long.
func (c *Common) BackOff() *configv1alpha1.BackOff {
	return c.backOff.or(configv1alpha1.DefaultBackOff)
}

// FragmentationInterval returns the time between two counts of the cluster's free sets, 0 for never.
func (c *Common) FragmentationInterval() time.Duration {
	if !c.allocates {
		return 0
	}
	return c.interval.or(func() *metav1.Duration {
		return &metav1.Duration{Duration: configv1alpha1.DefaultFragmentationInterval}
	}).Duration
}

// stated is the value of an argument for all profiles, with the name of the profile that sets it. value is nil if no profile
// sets it.
type stated[T any] struct {
	value   *T
	profile string
}

func (s *stated[T]) add(profile, name string, value *T) error {
	switch {
	case value == nil:
		return nil
	case s.value == nil:
		*s = stated[T]{value, profile}
		return nil
	case reflect.DeepEqual(s.value, value):
		return nil
	}
	return fmt.Errorf("profile %s has %s %s, but profile %s has %s: the argument applies to the whole scheduler, so set it in one profile, or to the same value in all profiles",
		profile, name, written(value), s.profile, written(s.value))
}

func (s *stated[T]) or(other func() *T) *T {
	if s.value == nil {
		return other()
	}
	return s.value
}

// written returns the value of an argument as it is written in a configuration file.
func written(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(text)
}
