// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !kubernetes1.36

// Package compat has the parts of the library for dynamic resource allocation that Kubernetes 1.36 lacks. Through this package,
// celset's libraries build with that version, too. With the build tag kubernetes1.36 these features are always off. Package
// [github.com/celset/celset/apis/compat] does the same for fields of the API.
package compat

import (
	"context"

	"github.com/google/cel-go/cel"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apiserver/pkg/cel/library"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
)

// Lists returns the CEL library of list functions.
func Lists() cel.EnvOption { return library.Lists(library.ListsVersion(1)) }

// EnhanceRuntimeError adds a hint about optional fields to an error.
func EnhanceRuntimeError(err error) error { return dracel.EnhanceRuntimeError(err) }

// CompileDerivedAttribute compiles the expression of a derived attribute. It returns the cached result if there is one.
func CompileDerivedAttribute(in *dracel.Cache, expression string) dracel.CompilationResult {
	return in.GetOrCompileDerivedAttribute(expression)
}

// DerivedAttribute evaluates the expression of a derived attribute on a device.
func DerivedAttribute(ctx context.Context, compiled dracel.CompilationResult, device dracel.Device) (*resourceapi.DeviceAttribute, error) {
	attribute, _, err := compiled.EvaluateDerivedAttribute(ctx, device)
	return attribute, err
}

// CompatibilityGroups returns a pointer to the field that enables the feature DRADeviceCompatibilityGroups.
func CompatibilityGroups(f *structured.Features) *bool { return &f.CompatibilityGroups }

// DerivedAttributes returns a pointer to the field that enables the feature DRADerivedAttributes.
func DerivedAttributes(f *structured.Features) *bool { return &f.DerivedAttributes }

// FractionalCapacityRange returns a pointer to the field that enables the feature DRAFractionalCapacityRange.
func FractionalCapacityRange(f *structured.Features) *bool { return &f.FractionalCapacityRange }

// OptionalNodeOperations returns a pointer to the field that enables the feature DRAOptionalNodeOperations.
func OptionalNodeOperations(f *structured.Features) *bool { return &f.OptionalNodeOperations }
