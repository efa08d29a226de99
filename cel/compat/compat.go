// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !kubernetes1.36

// Package compat has what the library for dynamic resource allocation got after version 1.36 of Kubernetes, so that celset's
// libraries are built with that version, too. With the build tag kubernetes1.36 the features are off, whoever turns them on.
// Package [github.com/celset/celset/apis/compat] is the same for fields of the API.
package compat

import (
	"context"

	"github.com/google/cel-go/cel"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apiserver/pkg/cel/library"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
)

// Lists are the functions of lists.
func Lists() cel.EnvOption { return library.Lists(library.ListsVersion(1)) }

// EnhanceRuntimeError adds to an error how to read what may be absent.
func EnhanceRuntimeError(err error) error { return dracel.EnhanceRuntimeError(err) }

// CompileDerivedAttribute compiles the expression of a derived attribute, unless the cache has it.
func CompileDerivedAttribute(in *dracel.Cache, expression string) dracel.CompilationResult {
	return in.GetOrCompileDerivedAttribute(expression)
}

// DerivedAttribute evaluates the expression of a derived attribute on a device.
func DerivedAttribute(ctx context.Context, compiled dracel.CompilationResult, device dracel.Device) (*resourceapi.DeviceAttribute, error) {
	attribute, _, err := compiled.EvaluateDerivedAttribute(ctx, device)
	return attribute, err
}

// CompatibilityGroups is the feature DRADeviceCompatibilityGroups.
func CompatibilityGroups(f *structured.Features) *bool { return &f.CompatibilityGroups }

// DerivedAttributes is the feature DRADerivedAttributes.
func DerivedAttributes(f *structured.Features) *bool { return &f.DerivedAttributes }

// FractionalCapacityRange is the feature DRAFractionalCapacityRange.
func FractionalCapacityRange(f *structured.Features) *bool { return &f.FractionalCapacityRange }

// OptionalNodeOperations is the feature DRAOptionalNodeOperations.
func OptionalNodeOperations(f *structured.Features) *bool { return &f.OptionalNodeOperations }
