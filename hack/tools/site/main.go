// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Command site writes the documentation as a static web site:
//
//	site ROOT DIRECTORY
//
// ROOT is the root of the repository. The README becomes the first page. Each other Markdown file in the root or below docs
// also becomes a page. The navigation comes from docs/README.md. A link to any other file outside docs leads to the repository.
// A link to a file or an anchor that doesn't exist is an error. Two anchors of a page with the same name are an error, too.
//
// The site has no script. The playground is a separate directory of the site; "make site" adds it.
package main

import (
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

//go:embed page.html
var pageTemplate string

//go:embed site.css
var stylesheet []byte

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: site ROOT DIRECTORY")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
}

// run writes the site of the repository in root into a directory.
func run(root, directory string) error {
	s := site{root: root, pages: map[string]*page{}, files: map[string]bool{}}
	if err := s.read(); err != nil {
		return err
	}
	if err := s.link(); err != nil {
		return err
	}
	return s.write(directory)
}

// site holds the pages of the site, and the other files that the pages refer to. Both have paths relative to the root of the
// repository as keys.
type site struct {
	root  string
	pages map[string]*page
	files map[string]bool
}

// read parses the pages in the root and below docs.
func (s *site) read() error {
	names, err := fs.Glob(os.DirFS(s.root), "*.md")
	if err != nil {
		return err
	}
	err = fs.WalkDir(os.DirFS(s.root), "docs", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && path.Ext(name) == ".md" {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, name := range names {
		content, err := os.ReadFile(filepath.Join(s.root, filepath.FromSlash(name)))
		if err != nil {
			return err
		}
		s.pages[name] = parse(name, content)
	}
	return nil
}

// link replaces the destinations of all links by addresses in the site.
func (s *site) link() error {
	var errs []error
	for _, p := range s.pages {
		for _, id := range p.twice {
			errs = append(errs, fmt.Errorf("%s: there are two anchors #%s", p.name, id))
		}
		errs = append(errs, p.eachLink(func(destination string) (string, error) { return s.resolve(p, destination) }))
	}
	return errors.Join(errs...)
}

// repository is the address of files that are not part of the site.
const repository = "https://github.com/celset/celset/blob/main/"

// resolve returns the address for a link of a page.
func (s *site) resolve(from *page, destination string) (string, error) {
	if strings.Contains(destination, "://") || strings.HasPrefix(destination, "mailto:") {
		return destination, nil
	}
	target, anchor, _ := strings.Cut(destination, "#")
	name := from.name
	if target != "" {
		name = path.Join(path.Dir(from.name), target)
	}
	if to := s.pages[name]; to != nil {
		if anchor != "" && !to.anchors[anchor] {
			return "", fmt.Errorf("%s: link %s: %s has no anchor #%s", from.name, destination, name, anchor)
		}
		address := relative(from.address(), to.address())
		if anchor != "" {
			address += "#" + anchor
		}
		return address, nil
	}
	info, err := os.Stat(filepath.Join(s.root, filepath.FromSlash(name)))
	switch {
	case err != nil:
		return "", fmt.Errorf("%s: link %s: %w", from.name, destination, err)
	case strings.HasPrefix(name, "docs/") && !info.IsDir():
		s.files[name] = true
		return relative(from.address(), name), nil
	case anchor != "":
		return repository + name + "#" + anchor, nil
	default:
		return repository + name, nil
	}
}

// write writes all pages and files.
func (s *site) write(directory string) error {
	parsed, err := template.New("page").Parse(pageTemplate)
	if err != nil {
		return err
	}
	navigation := s.pages["docs/README.md"].sections()
	for _, p := range s.pages {
		content, err := p.render(parsed, navigation)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		if err := put(directory, p.address(), content); err != nil {
			return err
		}
	}
	for name := range s.files {
		content, err := os.ReadFile(filepath.Join(s.root, filepath.FromSlash(name)))
		if err != nil {
			return err
		}
		if err := put(directory, name, content); err != nil {
			return err
		}
	}
	return put(directory, "site.css", stylesheet)
}

func put(directory, name string, content []byte) error {
	file := filepath.Join(directory, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, content, 0o644)
}
