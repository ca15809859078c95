package search

// askingWords returns the words of a language that belong to the form of a question, not to its
// subject, such as "find". They are removed only from questions, because texts also use them in
// other senses.
func askingWords(lang string) string {
	switch lang {
	case "en":
		return `please thank thanks tell know want wants wanted need needs help find finding look looking interested like wonder
			wondering explain show give anyone anybody someone somebody possible happen happens mean means`
	case "de":
		return `bitte danke sage sagen weiß wissen möchte möchten brauche brauchen hilfe helfen finde finden suche suchen schauen
			erkläre erklären zeige zeigen gib geben jemand möglich passiert bedeutet heißt`
	case "fr":
		return `merci dire sais savoir voudrais veux besoin aide aider trouver cherche chercher regarder expliquer montrer donner
			quelqu quelqu'un possible passe signifie`
	case "es":
		return `favor gracias decir sé saber quiero quisiera necesito ayuda ayudar encontrar busco buscar mirar explicar mostrar dar
			alguien posible pasa significa`
	}
	return ""
}

// stopWords returns the stop words of a language, or "" for a language without a list. The
// list omits the final apostrophe of words that end in one.
func stopWords(lang string) string {
	switch lang {
	case "en":
		return `a about above after again against all also am an and any are aren't arent as at be because been before being below
			between both but by can cannot cant could couldnt did didnt do does doesnt doing dont down during each few for from further
			had hadnt has hasnt have havent having he her here heres hers herself hes him himself his how hows i im in
			into is isnt it its itself ive lets me more most my myself no nor not of off on once only or other ought our ours ourselves
			out over own same shall she should shouldnt so some such than that thats the their theirs them themselves then there theres
			these they theyd theyll theyre theyve this those through to too under until up upon us very was wasnt we were werent weve
			what whats when whens where wheres which while who whom whos whose why whys will with within without wont would wouldnt
			you youd youll your youre yours yourself yourselves youve`
	case "de":
		return `aber alle allem allen aller alles als also am an ander andere anderem anderen anderer anderes auch auf aus bei beim bin
			bis bist da dadurch daher damit dann das dass dasselbe dazu dein deine deinem deinen deiner dem den denn der deren des
			dessen dich die dies diese dieselbe diesem diesen dieser dieses dir doch dort du durch ein eine einem einen einer eines er
			es etwas euch euer eure für gegen hab habe haben hat hatte hatten hier hin hinter ich ihm ihn ihnen ihr ihre ihrem ihren
			ihrer im in ins ist ja jede jedem jeden jeder jedes jener kann kein keine keinem keinen keiner können könnte machen man
			manche mein meine mich mir mit muss nach nicht nichts noch nun nur ob oder ohne sehr sein seine seinem seinen seiner seit
			sich sie sind so solche soll sollte sondern sonst über um und uns unser unsere unter vom von vor während war waren warum
			was weder weil welche welchem welchen welcher welches wenn wer werden wie wieder will wir wird wo wurde wurden würde zu zum
			zur zwar zwischen`
	case "fr":
		return `à afin ai ainsi après au aucun aucune aussi autre autres aux avait avant avec avez avoir avons c car ce ceci cela celle
			celles celui ces cet cette ceux chaque chez comme comment d dans de depuis des donc dont du elle elles en encore entre es
			est et étaient était étant été être eu eux fait faire il ils j je jusqu l la là le les leur leurs lorsqu lorsque lui m ma
			mais me même mes moi moins mon n ne ni nos notre nous on ont or ou où par parce pas pendant peu peut peuvent plus pour
			pourquoi puis puisqu qu quand que quel quelle quelles quels qui quoi quoiqu s sa sans se sera ses si son sont sous sur t ta
			te tes toi ton tous tout toute toutes très tu un une vers vos votre vous y`
	case "es":
		return `a al algo algunas algunos ante antes aquel aquella aquellos así aunque bien cada como cómo con contra cual cuál cuando
			cuándo de del desde donde dónde durante e el él ella ellas ellos en entre era eran es esa esas ese eso esos esta ésta está
			están estas este esto estos fue fueron ha había hace han hasta hay la las le les lo los más me mi mis mientras mismo mucho
			muy nada ni no nos nosotros nuestra nuestro o os otra otras otro otros para pero poco por porque pues que qué quien quién
			se sea según ser si sí sido sin sino sobre son su sus también tan tanto te tiene tienen todo todos tu tú un una unas uno
			unos usted y ya yo`
	case "it":
		return `a ad agli ai al all alla alle allo anche ancora avere aveva bell c che chi ci ciò col coll come con contro cosa così cui
			d da dagl dagli dai dal dall dalla dalle dallo degl degli dei del dell della delle dello di dopo dove due e è ecco ed era
			erano essere fa fino fra fu gli gl ha hai hanno ho i il in io l la le lei li lo loro lui m ma mentre mi mia mio molto ne
			negl negli nei nel nell nella nelle nello noi non nostra nostro o ogni oppure per perché perciò però più poi possono può
			qual quale quali quando quanto quell quella quelle quelli quello quest questa queste questi questo qui s se sempre senza
			si sia siamo sono sta stata stato su sua sue sugl sugli sui sul sull sulla sulle sullo suo t ti tra tu tutte tutti tutto un
			una uno v vi voi`
	case "pt":
		return `a à ao aos aquela aquele aquilo as às até cada com como contra da das de dela dele deles depois desde do dos e é ela elas
			ele eles em entre era eram essa esse esta está estão este eu foi foram há isso isto já lhe mais mas me mesmo meu minha muito
			na não nas nem no nos nós nossa nosso num numa o onde os ou para pela pelas pelo pelos pode podem por porque quais qual
			quando que quem são se seja sem ser seu seus só sob sobre sua suas também tem têm ter todo todos tu tua um uma umas uns
			você vocês`
	case "nl":
		return `aan al alles als altijd ander andere ben bij daar dan dat de deze die dit doch doen door dus een en er geen geweest haar had
			heb hebben heeft hem het hier hij hoe hun iemand iets ik in is ja je jij jullie kan kon kunnen maar me meer men met mij mijn
			moet na naar niet niets nog nu of om omdat onder ons ook op over reeds te tegen toch toen tot u uit uw van veel voor waar
			wanneer want waren was wat we welke werd wezen wie wij wil worden wordt zal ze zei zelf zich zij zijn zo zonder zou`
	case "sv":
		return `alla allt att av bara blev bli blir de dem den denna deras dess dessa det detta dig din dina dit ditt du där efter ej eller
			en er ett från för ha hade han hans har henne hennes hon honom hur här i icke ingen inom inte jag ju kan kunde man med mellan
			men mig min mina mitt mot mycket ni nu när någon något några och om oss på samma sedan sig sin sina sitta själv skulle som så
			sådan till under upp ut utan vad var vara varför varit varje vars vem vi vid vilka vilken vilket är åt över`
	case "da":
		return `ad af alle alt anden at blev blive bliver da de dem den denne der deres det dette dig din disse dog du efter eller en end er
			et for fordi fra få ham han hans har havde have hende hendes her hos hun hvad hvem hver hvilken hvis hvor hvordan i ikke ind
			ingen jeg jer kan kun man mange med meget men mig min mine mit mod må ned noget nogle nu når og også om op os over på selv sig
			sin sine sit skal skulle som sådan thi til ud under var vi vil ville vor være været`
	case "no":
		return `alle at av bare begge ble blei bli blir både da de deg dei deim den denne der dere deres det dette di din disse ditt du eg
			ein eit eller en enn er et ett etter for fordi fra før ha hadde han hans har henne hennes her hos hun hva hvem hver hvilken
			hvis hvor hvordan hvorfor i ikke ikkje ingen inn jeg kan kom kun kunne kva kvifor man mange me med meg mellom men mer min mitt
			mot må ned no noe noen nå når og også om opp oss over på se seg selv si sin sitt skal skulle slik som så til um under upp ut
			uten var ved vi vil ville vår være vært å`
	case "fi":
		return `ei eivät emme en ennen et ette että he heidän heille hän häneen hänen häntä ilman itse ja joiden joihin joka jolla jolle
			jonka jos joskus jossa josta jota jotka jotta kaikki kanssa kautta koska kuin kuka kun kunnes kuten me meidän meille mikä
			mikään miksi millä minkä minä minun minut missä mistä mitä mitään mukaan muissa mutta myös ne niiden niin niissä niistä
			niitä noin nuo nyt näin olemme olen olet oli olisi olivat olla ole on ovat se sekä sen siihen siinä siis siitä sinä sinun
			sillä sitä tai te teidän tuo tähän tämä tämän tässä tästä tätä vaan vai vaikka varten vielä voi yli`
	case "ru":
		return `а без более больше будет будто бы был была были было быть в вам вас весь во вот все всего всех вы где да даже для до его ее
			ей если есть еще же за здесь и из или им иногда их к как какая какой когда который ли лучше между меня мне много может можно
			мой мы на над надо нас не него нее ней нельзя нет ни них но ну о об однако он она они оно от перед по под после потом потому
			почти при про раз с сам свою себе себя со так такой также там тебя тем теперь то тогда того тоже только том тот ты у уж уже
			чего чем через что чтобы чуть эта эти это этого этой этом этот эту я`
	case "uk":
		return `а але без би був була були було бути в вам вас весь ви від він вона вони воно все всі де для до є з за зі і із її їх й його
			коли який яка яке які між мене ми мною на над нам нас не ні ну о об перед під по при про с свій себе так також там те тим
			то тобі тоді той тому ти у це ця цей ці чи що щоб я як якщо`
	case "pl":
		return `a aby ale bardzo bez bo by być był była było były ci co czy dla do gdy gdzie go i ich im ja jak jako je jego jej jest jeśli
			już każdy która które którego której który których którzy lub ma mi między może mu my na nad nam nas nie niego nich nim niż o
			od on ona oni ono oraz po pod przed przez przy są się swoje ta tak także tam te tego tej ten to tu tych tylko tym u w we więc
			wszystko z za ze że`
	case "cs":
		return `a aby ale ani ano až bez být byl byla bylo byly bude co či do i jak jako je jeho její jejich jen ještě již jsem jsme jsou k kde
			kdo když která které který kteří ke mezi mít na nad ne nebo než o od on ona oni po pod podle pro proto protože před při s se si
			své ta tak také tato tedy ten tento to toho tom tomto tu ty u v ve však z za ze že`
	case "hu":
		return `a abban ahhoz ahogy aki akik akkor alatt amely amelyek ami amíg amikor annak arra az azért azok azon azonban aztán át be
			csak de e egy egyik ehhez el ellen elő én ennek és ez ezek ezen ezért ezzel fel fölött ha hanem hogy hogyan igen így illetve
			is itt ki kell keresztül köré között le legyen lehet lenne lesz maga meg még melyek mert mi míg miért milyen mind minden mint
			mintha most nagyon ne nekem nem nincs olyan ott össze ő ők pedig s saját sem si szerint talán te tehát továbbá több után úgy új
			utána vagy vagyok van vannak valami való volt voltak vissza viszont volna`
	case "ro":
		return `a acea aceasta această aceea acei aceia acel acela acele acest acesta aceste acești ai al ale am ar are as au avea ca că care ce
			cel cele cei cine cu cum da dacă dar de deci deși din după ea ei el ele era este eu fără fi fie fiind fost i în îl împotriva
			în intre între iar îi la le li lor lui mai mea mei meu mult nici noi nostru nu o or ori pe pentru peste poate prin sa să sale
			sau se și sunt sub su te tot toate tu un una unei unele unor unui vă voi vom vor`
	case "tr":
		return `acaba ama ancak aslında az bana bazı belki ben beni benim beri bir biri birkaç birşey biz bize bizim bu buna bunda bundan
			bunlar bunu bunun çok çünkü da daha de defa değil diye dolayı en gibi göre hem hep hepsi her hiç için içinde ile ise kadar kez
			ki kim mı mi mu mü nasıl ne neden nerde nerede nereye niçin niye o olan olarak oldu olduğu olur on ona ondan onlar onu onun
			sanki siz sizin sonra şey şu şuna şunu tüm ve veya ya yani yok`
	case "ar":
		return `أن أو أي إذا إلا إلى إن أنا أنت التي الذي الذين ألا أما أيضا بعد بل به بها بين تلك ثم حتى حيث ذلك عن عند عندما على عليه عليها
			غير في فيه فيها قبل قد كان كانت كل كما لا لأن لدى لكن له لها لم لن ليس ما مثل مع من منذ منه منها هذا هذه هل هم هنا هو هي و
			وقد ولا وهو وهي يكون`
	case "fa":
		return `آن از است اگر اما او این با باید بر برای بود بودن به بی تا چه خود در دو را شد شده شود کرد کرده کند که ما من می نیز هر هم
			همه و ولی یا یک`
	case "el":
		return `αλλά αν από αυτά αυτές αυτή αυτό αυτός για δε δεν είναι εκ ενώ ένα ένας επί η ή ήταν θα και κατά μα με μετά μη μην μια μόνο να ο
			οι όμως όπως όπου όταν ότι ου πιο που προς πως σαν σε στα στη στην στης στις στο στον στους στου στων τα τη την της τι τις το
			τον του τους τότε των ως`
	case "he":
		return `אבל או אולי אותו אותה אז אחרי אין איך אל אם אנחנו אני אף את אתה אתם בין גם הוא היא היה היו הם הן זאת זה זו יש כדי כי כך כל
			לא לו לה לפני מה מי מן נגד על עם עד רק של שלו שלה תחת`
	case "ga":
		return `a ach ag agus an aon ar arna as b ba beirt bhúr caoga ceathair cuig d dá dar de dó don dtí é faoi faoin gach gan go gur i iad
			idir in ina is le leis m mar mo muid na nach ní níl ó ón os roimh sa se sé sí sin siad sna tá thar thú tú um uime`
	case "id", "ms":
		return `ada adalah agar akan aku anda apa atau bagi bahwa banyak bisa dan dalam dapat dari dengan di dia hanya harus ia ini itu jika
			juga kami kamu karena ke kepada kita lagi lebih maka mereka oleh pada para saat saya sebagai secara sehingga seperti serta
			setelah sudah suatu tapi telah tentang tersebut tetapi tidak untuk yang`
	case "ca":
		return `a al als amb aquell aquesta aquest així cada com contra d de del dels des el els en entre era és es esta està ha han hi ho i ja
			l la les li lo m me més mentre molt n na ni no nosaltres o on per perquè però quan que qui s se sense ser si sobre són sota
			són també tan tot un una unes uns va`
	}
	return ""
}
