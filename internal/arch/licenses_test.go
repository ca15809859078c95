package arch

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// licenses are phrases of the licenses that a module in the command may have. All of them permit
// distribution in a program under the Apache License.
var licenses = map[string]string{
	"MIT":        "Permission is hereby granted, free of charge, to any person obtaining a copy",
	"Apache-2.0": "Apache License Version 2.0",
	"BSD":        "Redistribution and use in source and binary forms, with or without modification, are permitted",
	"ISC":        "Permission to use, copy, modify, and/or distribute this software for any purpose with or without fee is hereby granted",
	"MPL-2.0":    "Mozilla Public License Version 2.0",
	"public":     "Anyone is free to copy, modify, publish, use, compile, sell, or distribute",
}

var licenseFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|unlicense)`)

// licenseOf returns the license of a text, or "".
func licenseOf(text string) string {
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\r\n,", r) }), " ")
	for name, phrase := range licenses {
		if strings.Contains(strings.ToLower(text), strings.ToLower(strings.ReplaceAll(phrase, ",", ""))) {
			return name
		}
	}
	return ""
}

// TestLicenses reads the license files of every module whose code is in the command.
func TestLicenses(t *testing.T) {
	c := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Dir}}{{end}}{{end}}", "github.com/millrace/millrace/cmd/millrace")
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	dirs := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if module, dir, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			dirs[module] = dir
		}
	}
	if len(dirs) < 10 {
		t.Fatalf("go list names %d modules", len(dirs))
	}
	for module, dir := range dirs {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, e := range entries {
			if e.IsDir() || !licenseFile.MatchString(e.Name()) || strings.HasSuffix(e.Name(), "-LOGO") { // the license of a picture
				continue
			}
			text, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				t.Fatal(err)
			}
			found++
			if licenseOf(string(text)) == "" {
				t.Errorf("%s: the license in %s is not in the list", module, e.Name())
			}
		}
		if found == 0 {
			t.Errorf("%s has no license file", module)
		}
	}
}

// Other licenses are not accepted.
func TestLicenseOf(t *testing.T) {
	for text, want := range map[string]string{
		"GNU GENERAL PUBLIC LICENSE\nVersion 3, 29 June 2007": "", "GNU LESSER GENERAL PUBLIC LICENSE": "", "": "",
		"Apache License\n  Version 2.0, January 2004": "Apache-2.0", "MIT\n\nPermission is hereby granted, free of charge, to any\nperson obtaining a copy": "MIT",
	} {
		if got := licenseOf(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}
