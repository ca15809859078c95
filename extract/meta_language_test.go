package extract

import "testing"

// Function words decide clear cases, and profiles the others.
func TestByFunctionWords(t *testing.T) {
	for _, c := range []struct{ want, text string }{
		{"en", "The wheel is turned by the water that comes from the pond, and it drives the stones with which the miller grinds the grain. In a dry summer it stands still for weeks."},
		{"de", "Das Rad wird von dem Wasser gedreht, das aus dem Teich kommt, und es treibt die Steine an, mit denen der Müller das Korn mahlt. In einem trockenen Sommer steht es still."},
		{"fr", "La roue est mue par l'eau qui vient de l'étang, et elle fait tourner les meules avec lesquelles le meunier moud le grain. Dans un été sec elle ne tourne pas pendant des semaines."},
		{"es", "La rueda gira por el agua que viene del estanque, y mueve las piedras con las que el molinero muele el grano. En un verano seco no se mueve por semanas, y el molino está como un muerto."},
		{"it", "La ruota è mossa dalla forza di una corrente che viene dallo stagno, e fa girare le pietre con le quali il mugnaio macina il grano. In una estate secca la ruota non si muove per settimane."},
		{"nl", "Het rad wordt door het water gedraaid dat uit de vijver komt, en het drijft de stenen aan waarmee de molenaar het graan maalt. In een droge zomer staat het stil voor weken."},
		{"", "Vannet driver hjulet rundt, og hjulet driver steinene som kornet males med. Om sommeren, når det er tørt, står det stille i mange uker, og mølleren har ikke noe å gjøre i det hele tatt."},
		{"", "wheel water pond stone miller grain summer week bridge river flood sluice weir meadow bank mill race channel paddle gear axle dam stream flour sack ledger toll oats barley rye spelt"},
		{"", "The water of the pond."},
	} {
		if got := byFunctionWords(c.text); got != c.want {
			t.Errorf("%q, want %q: %s", got, c.want, c.text)
		}
	}
}
