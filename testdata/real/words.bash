# The content of the test sites: 16 subjects, with three pages each. Read this file with ".".

subjects=(
	"Overshot wheel|wheels|The water falls on the wheel from above and fills its buckets, whose weight turns it."
	"Breastshot wheel|wheels|The water meets the wheel at the height of its axle and is held against it by a curved apron."
	"Undershot wheel|wheels|The stream runs below the wheel and pushes its boards, so that it needs no fall at all."
	"Horizontal wheel|wheels|A small wheel lies flat under the floor, and its shaft goes straight up into the stone."
	"Leat|water|A narrow channel is cut along the contour, and brings the river to the mill with hardly any slope."
	"Weir|water|A low wall across the river raises it by a man's height, and turns a part of it into the channel."
	"Sluice|water|A gate of oak in a frame of oak is lifted by a rack, a hand's breadth for each pair of stones."
	"Mill pond|water|What comes down at night is kept behind a bank of clay, and is let out when there is corn to grind."
	"Tail race|water|Below the wheel the water has to leave faster than it comes, or the wheel will wade."
	"Bed stone|stones|The lower of the two stones lies still, level to the thickness of a sheet of paper."
	"Runner stone|stones|The upper stone hangs on an iron bar and turns a hundred and twenty times in a minute."
	"Dressing|stones|Every few weeks the furrows are cut anew, with a steel bill and a straight edge rubbed with red ochre."
	"Damsel|stones|An iron spindle with four edges shakes the shoe, and so the corn falls faster when the stone does."
	"Sack hoist|work|A slack belt is drawn tight by a cord, and the wheel itself lifts the sacks to the top of the house."
	"Bolter|work|The meal slides through a sleeve of cloth that is beaten by bars, and the bran stays inside."
	"Toll|work|The miller keeps a sixteenth of the corn, and measures it in a dish that hangs at the door."
)

aspects=(
	"History|Nobody knows who built the first one in the valley. The oldest paper that tells of it is a quarrel of 1274 about eels."
	"Repair|It is looked after in the weeks after the harvest fair, when the river is low and nobody is in a hurry."
	"Figures|We have measured it for three summers, in the morning and in the evening, and put the middle value down here."
)

# each COMMAND calls the command for every subject, with the subject, its group, its sentence and its number.
each() {
	local i s group text
	for i in "${!subjects[@]}"; do
		IFS='|' read -r s group text <<<"${subjects[$i]}"
		"$1" "$s" "$group" "$text" "$((i + 1))"
	done
}

# each_aspect COMMAND SUBJECT NUMBER calls the command with the subject, its number, the aspect, and the words of the page.
each_aspect() {
	local i a text
	for i in "${!aspects[@]}"; do
		IFS='|' read -r a text <<<"${aspects[$i]}"
		"$1" "$2" "$3" "$a" "$text For the ${2,,} that comes to $(($3 * 7 + i * 3)) entries in the mill book, most of them from rainy years, and $(($3 + i * 11)) drawings."
	done
}
