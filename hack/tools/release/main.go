// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Release makes all files of a release of celset, without a registry and without a network but Go
// modules, and pushes its images and charts:
//
//	release build --version=v0.1.0 --source=. --output=dist --time=1750000000
//	release push --from=dist
//
// The same source, version and time give the same bytes. "make release" calls it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "release: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	const usage = "the first argument must be build, push or base"
	if len(args) == 0 {
		return fmt.Errorf("%s", usage)
	}
	flags := flag.NewFlagSet("release "+args[0], flag.ContinueOnError)
	switch args[0] {
	case "build":
		var o options
		o.register(flags)
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		return build(ctx, &o)
	case "push":
		from := flags.String("from", "dist", "directory that build has written")
		references := flags.String("references", "", "file to write the names of what was pushed to, by digest")
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		return push(ctx, *from, *references)
	case "base":
		base, err := baseImage()
		if err != nil {
			return err
		}
		digest, err := base.Digest()
		fmt.Println(digest)
		return err
	}
	return fmt.Errorf("%s, not %q", usage, args[0])
}
