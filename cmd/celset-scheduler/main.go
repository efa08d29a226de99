// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Command celset-scheduler is kube-scheduler with the plugin DynamicResourcesCEL. It has kube-scheduler's flags. The plugin has
// an effect only in profiles that enable it in place of DynamicResources. See package app.
package main

import (
	"os"

	_ "golang.org/x/crypto/x509roots/fallback" // root certificates, because images have none
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"

	"github.com/celset/celset/cmd/celset-scheduler/app"
)

func main() { os.Exit(cli.Run(app.NewCommand())) }
