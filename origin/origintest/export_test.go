package origintest

// Cases returns the sentences of the contract.
func Cases() (names []string) {
	for _, c := range cases() {
		names = append(names, c.name)
	}
	return names
}
