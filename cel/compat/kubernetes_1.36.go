// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build kubernetes1.36

// Package compat is built for Kubernetes 1.36, which has nothing of what it is about.
package compat

import (
	"context"
	"errors"

	"github.com/google/cel-go/cel"
	resourceapi "k8s.io/api/resource/v1"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/library"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
)

var errNotThere = errors.New("Kubernetes 1.36 has no derived attributes")

// Lists are the functions of lists.
func Lists() cel.EnvOption { return library.Lists() }

// EnhanceRuntimeError adds nothing to an error.
func EnhanceRuntimeError(err error) error { return err }

// CompileDerivedAttribute can't compile.
func CompileDerivedAttribute(_ *dracel.Cache, expression string) dracel.CompilationResult {
	return dracel.CompilationResult{Expression: expression, Error: &apiservercel.Error{Type: apiservercel.ErrorTypeInvalid, Detail: errNotThere.Error()}}
}

// DerivedAttribute can't evaluate.
func DerivedAttribute(context.Context, dracel.CompilationResult, dracel.Device) (*resourceapi.DeviceAttribute, error) {
	return nil, errNotThere
}

// CompatibilityGroups is the feature DRADeviceCompatibilityGroups, which is off.
func CompatibilityGroups(*structured.Features) *bool { return new(bool) }

// DerivedAttributes is the feature DRADerivedAttributes, which is off.
func DerivedAttributes(*structured.Features) *bool { return new(bool) }

// FractionalCapacityRange is the feature DRAFractionalCapacityRange, which is off.
func FractionalCapacityRange(*structured.Features) *bool { return new(bool) }

// OptionalNodeOperations is the feature DRAOptionalNodeOperations, which is off.
func OptionalNodeOperations(*structured.Features) *bool { return new(bool) }
