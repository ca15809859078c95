package origintest

// Cases returns the names of the cases.
func Cases() (names []string) {
	for _, c := range cases() {
		names = append(names, c.name)
	}
	return names
}
