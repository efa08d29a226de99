// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build kubernetes1.36

// Package compat replaces features of later Kubernetes versions that version 1.36 lacks.
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

// Lists returns the CEL library of list functions.
func Lists() cel.EnvOption { return library.Lists() }

// EnhanceRuntimeError returns the error unchanged.
func EnhanceRuntimeError(err error) error { return err }

// CompileDerivedAttribute returns an error, because this version has no derived attributes.
func CompileDerivedAttribute(_ *dracel.Cache, expression string) dracel.CompilationResult {
	return dracel.CompilationResult{Expression: expression, Error: &apiservercel.Error{Type: apiservercel.ErrorTypeInvalid, Detail: errNotThere.Error()}}
}

// DerivedAttribute returns an error, because this version has no derived attributes.
func DerivedAttribute(context.Context, dracel.CompilationResult, dracel.Device) (*resourceapi.DeviceAttribute, error) {
	return nil, errNotThere
}

// CompatibilityGroups returns a pointer without effect, because this version lacks the feature DRADeviceCompatibilityGroups.
func CompatibilityGroups(*structured.Features) *bool { return new(bool) }

// DerivedAttributes returns a pointer without effect, because this version lacks the feature DRADerivedAttributes.
func DerivedAttributes(*structured.Features) *bool { return new(bool) }

// FractionalCapacityRange returns a pointer without effect, because this version lacks the feature DRAFractionalCapacityRange.
func FractionalCapacityRange(*structured.Features) *bool { return new(bool) }

// OptionalNodeOperations returns a pointer without effect, because this version lacks the feature DRAOptionalNodeOperations.
func OptionalNodeOperations(*structured.Features) *bool { return new(bool) }
