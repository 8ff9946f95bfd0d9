"""A year of a couple's chats in six languages, and what is recalled of them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import weft

NOW = datetime(2026, 9, 15, 12, tzinfo=UTC)  # a Tuesday
SENDER = "app:owner"
_LINE = re.compile(r"(?:@(?P<tag>[\w-]+) )?(?P<speaker>\w+): (?P<text>.+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One message of a diary. `tag` names it in a test, and `conversation` counts from 1."""

    tag: str
    conversation: int
    timestamp: datetime
    speaker: str
    text: str

    @property
    def message(self) -> weft.Message:
        if self.speaker == "weft":
            return weft.Message(role="assistant", content=self.text, timestamp=self.timestamp)
        return weft.Message(role="user", content=self.text, timestamp=self.timestamp, name=self.speaker)

    @property
    def shown(self) -> str:
        """Return the line as the context shows it: the day, the speaker and the words."""
        speaker = "Assistant" if self.speaker == "weft" else self.speaker
        return f"[{self.timestamp:%Y-%m-%d}] {speaker}: {self.text}"


def read(diary: str) -> list[Line]:
    """Return the lines of a diary: `---` starts a conversation, and a time sets that of the next line."""
    lines: list[Line] = []
    conversation, now = 0, NOW
    for row in filter(None, map(str.strip, diary.splitlines())):
        if row == "---":
            conversation += 1
        elif match := _LINE.fullmatch(row):
            tag, speaker, text = match["tag"] or "", match["speaker"], match["text"]
            lines.append(Line(tag=tag, conversation=conversation, timestamp=now, speaker=speaker, text=text))
            now += timedelta(minutes=1)
        else:
            now = datetime.fromisoformat(row).replace(tzinfo=UTC)
    return lines


async def save(store: weft.Store, lines: Sequence[Line], sender: str = "owner") -> dict[int, weft.Session]:
    """Store the lines as conversations of `sender`. Returns the sessions by their number."""
    sessions: dict[int, weft.Session] = {}
    for number in sorted({line.conversation for line in lines}):
        sessions[number] = await store.sessions.new("app", f"c{number}", sender, agent_id="weft")
        messages = [line.message for line in lines if line.conversation == number]
        await store.messages.append(sessions[number].id, *messages)
    return sessions


def builder(store: weft.Store, sender: str = "owner") -> weft.ContextBuilder:
    """Return a builder for a message of `sender`, on the day after the diary ends."""
    return (
        weft.ContextBuilder(recipe="weft")
        .with_store(store)
        .for_agent("weft")
        .for_sender("app", sender)
        .at(NOW)
    )


def recalled(context: weft.Context) -> list[str]:
    """Return the lines that the context shows as recalled, each with the day that stands above it."""
    rows, time = list[str](), ""
    for section in context.sections:
        for row in section.text.splitlines() if section.source == "recall" else ():
            if row.startswith("- "):
                rows.append(f"[{time}] {row.removeprefix('- ')}")
            else:
                time = row[:10]
    return rows


def item_count(context: weft.Context) -> int:
    """Return how many items of the receipt are recalled, its heading included."""
    return sum(item.source == "recall" for item in context.receipt.kept) if context.receipt else 0


def token_count(context: weft.Context) -> int:
    return sum(section.tokens for section in context.sections if section.source == "recall")


ENGLISH = """
---
2025-10-04 19:10
@book Ada: I started a book about lighthouse keepers in Norway, I can't put it down.
Ben: Lend it to me when you're done?
weft: I've added it to your reading list, Ben.
Ada: sure, give me two weeks
2025-10-18 10:02
@washing Ben: The washing machine is leaking again.
weft: The warranty runs until January, so the repair should be free.
Ben: ok I'll call them
2025-11-12 08:15
@dentist-nov Ada: Back from the dentist, she says the molar needs a root canal.
Ben: ouch, poor you
weft: Eat something soft tonight, and no coffee until the numbness is gone.
---
2025-12-24 17:30
@dinner-xmas Ben: The goose is in the oven, my parents arrive at seven, and Ada made the red cabbage.
Ada: don't forget the candles
2026-01-10 16:44
@trip-winter Ada: We're in Zermatt, the snow is perfect and Ben fell off the ski lift twice.
Ben: once!
weft: Tomorrow it will be minus twelve degrees, so take the thick gloves.
2026-01-25 20:05
Ada: Mum turns sixty soon and I still have no idea for a present.
@present weft: She enjoyed the concert last year: how about tickets for the opera?
Ada: good idea, the opera it is
---
2026-02-10 17:20
@car-feb Ben: Picked up the car from the garage, new brakes, 420 euros.
Ada: 420, seriously?
Ben: pads and discs on both sides
2026-02-21 13:37
Ben: guess what
Ben: the vet called
Ben: our cat is allergic
@cat Ben: to chicken of all things
Ada: no wonder she keeps scratching
2026-03-10 15:30
@dentist-mar Ada: The dentist put the crown in today, that was 650 on my card.
weft: Send the invoice to the insurance before the quarter ends.
2026-04-05 11:15
@easter Ben: We hid the eggs in Granny's garden and the dog found most of them before the kids did.
Ada: clever boy
---
2026-05-05 18:20
@flat-may Ada: The flat on Alma Street has three rooms and a balcony, the rent is 1,350.
Ben: is there a lift?
Ada: no, and it's the fourth floor
weft: I noted the viewing for Thursday at half past five.
2026-05-16 22:40
@dinner-may Ada: The Georgian restaurant was wonderful, we have to take your parents there.
Ben: they'd love those dumplings
2026-06-15 12:08
@car-jun Ben: Had the tires of the car changed, the garage found a nail in one of them.
weft: The next service is due at 90,000 kilometers.
---
2026-07-03 09:12
@meet Ada: Yesterday I ran into Clara at the station, she's moving to Toronto.
Ben: with the kids?
Ada: with all three of them
2026-07-18 14:50
@trip-summer Ben: Camping at the lake, the water has 22 degrees, and the mosquitoes eat us alive.
Ada: bring more spray please
2026-08-11 16:00
@flat-aug Ada: We signed the contract for the flat, we get the keys on the first of October.
weft: Congratulations! Remember to cancel the old electricity contract.
2026-08-29 11:31
@market Ben: Found a brass lamp for the hallway at the flea market, ten euros.
Ada: it had better not be ugly
---
2026-09-08 10:45
@dentist-sep Ada: The dentist only did a cleaning this time, no cavities.
Ben: finally
2026-09-11 18:02
@friday Ben: My boss wants me to lead the new project in Rotterdam.
Ada: wow, would you be away a lot?
Ben: two days a week maybe
2026-09-14 20:21
@yesterday Ada: The movers want 980 for everything, the piano included.
weft: That is 200 less than the other company asked for.
"""

SPANISH = """
---
2025-10-04 19:10
@book Lucía: He empezado un libro sobre los fareros de Noruega y no puedo soltarlo.
Marcos: ¿me lo prestas cuando lo acabes?
weft: Lo he apuntado en tu lista de lectura, Marcos.
Lucía: claro, dame dos semanas
2025-10-18 10:02
@washing Marcos: La lavadora vuelve a perder agua.
weft: La garantía dura hasta enero, así que la reparación debería ser gratis.
Marcos: vale, ahora los llamo
2025-11-12 08:15
@dentist-nov Lucía: Vengo del dentista, dice que hay que matar el nervio de la muela.
Marcos: uf, pobrecita
weft: Esta noche cena algo blando, y nada de café hasta que se te pase la anestesia.
---
2025-12-24 17:30
@dinner-xmas Marcos: El cordero está en el horno, mis padres llegan a las nueve y Lucía ha hecho los canapés.
Lucía: no te olvides de las velas
2026-01-06 10:20
@kings Lucía: A mi sobrino le han traído una bicicleta azul y no hay quien lo baje de ella.
Marcos: qué gracia
2026-01-17 16:44
@trip-winter Lucía: Estamos en Baqueira, la nieve está perfecta y Marcos se ha caído dos veces del telesilla.
Marcos: ¡solo una!
weft: Mañana habrá doce grados bajo cero, llevad los guantes gordos.
---
2026-02-10 17:20
@car-feb Marcos: Ya he recogido el coche del taller, frenos nuevos, 420 euros.
Lucía: ¿420, en serio?
Marcos: pastillas y discos de los dos lados
2026-02-21 13:37
Marcos: no te lo vas a creer
Marcos: ha llamado el veterinario
Marcos: la gata es alérgica
@cat Marcos: al pollo, nada menos
Lucía: normal que se rasque tanto
2026-03-10 15:30
@dentist-mar Lucía: El dentista me ha puesto hoy la corona, 650 euros de golpe.
weft: Manda la factura al seguro antes de que acabe el trimestre.
2026-04-02 21:15
@easter Marcos: Hemos visto la procesión desde el balcón de la abuela, y el perro ladraba a los tambores.
Lucía: qué valiente
---
2026-05-05 18:20
@flat-may Lucía: El piso de la calle Alma tiene tres habitaciones y terraza, el alquiler son 1.350.
Marcos: ¿tiene ascensor?
Lucía: no, y es un cuarto
weft: He apuntado la visita para el jueves a las cinco y media.
2026-05-16 23:40
@dinner-may Lucía: El restaurante georgiano es una maravilla, tenemos que llevar a tus padres.
Marcos: les van a encantar las empanadillas
2026-06-15 12:08
@car-jun Marcos: Le he cambiado las ruedas al coche, en el taller encontraron un clavo en una.
weft: La próxima revisión toca a los 90.000 kilómetros.
---
2026-07-03 09:12
@meet Lucía: Ayer me encontré a Begoña en la estación, se muda a Montevideo.
Marcos: ¿con los niños?
Lucía: con los tres
2026-07-18 14:50
@trip-summer Marcos: De acampada en el lago, el agua está a 22 grados y nos comen los mosquitos.
Lucía: trae más repelente, porfa
2026-08-11 16:00
@flat-aug Lucía: Hemos firmado el contrato del piso, nos dan las llaves el uno de octubre.
weft: ¡Enhorabuena! No olvidéis dar de baja la luz del piso viejo.
2026-08-29 11:31
@market Marcos: He encontrado una lámpara de latón para el pasillo en el rastro, diez euros.
Lucía: más vale que no sea fea
---
2026-09-08 10:45
@dentist-sep Lucía: El dentista solo me ha hecho una limpieza, ni una caries.
Marcos: por fin
2026-09-11 18:02
@friday Marcos: Mi jefa quiere que lleve el proyecto nuevo de Róterdam.
Lucía: hala, ¿y estarías mucho fuera?
Marcos: dos días por semana, quizá
2026-09-14 20:21
@yesterday Lucía: Los de la mudanza piden 980 por todo, piano incluido.
weft: Son 200 menos que la otra empresa.
"""

GERMAN = """
---
2025-10-04 19:10
@book Hanna: Ich habe ein Buch über Leuchtturmwärter in Norwegen angefangen, ich kann nicht aufhören.
Jonas: leihst du es mir danach?
weft: Ich habe es auf deine Leseliste gesetzt, Jonas.
Hanna: klar, gib mir zwei Wochen
2025-10-18 10:02
@washing Jonas: Die Waschmaschine läuft schon wieder aus.
weft: Die Garantie gilt bis Januar, die Reparatur müsste also kostenlos sein.
Jonas: ok, ich ruf da an
2025-11-12 08:15
@dentist-nov Hanna: Komme gerade vom Zahnarzt, der Backenzahn braucht eine Wurzelbehandlung.
Jonas: autsch, du Arme
weft: Iss heute Abend etwas Weiches, und kein Kaffee, solange die Betäubung wirkt.
---
2025-12-24 17:30
@dinner-xmas Jonas: Die Gans ist im Ofen, meine Eltern kommen um sieben, und Hanna hat den Rotkohl gemacht.
Hanna: denk an die Kerzen
2026-01-10 16:44
@trip-winter Hanna: Wir sind in Zermatt, der Schnee ist ein Traum, Jonas ist zweimal aus dem Lift gefallen.
Jonas: einmal!
weft: Morgen werden es minus zwölf Grad, nehmt die dicken Handschuhe mit.
2026-01-25 20:05
Hanna: Mama wird bald sechzig, und ich habe keine Idee für ein Geschenk.
@present weft: Das Konzert hat ihr damals gefallen: vielleicht Karten für die Oper?
Hanna: gute Idee, dann die Oper
---
2026-02-10 17:20
@car-feb Jonas: Das Auto ist aus der Werkstatt zurück, neue Bremsen, 420 Euro.
Hanna: 420, im Ernst?
Jonas: Beläge und Scheiben auf beiden Seiten
2026-02-21 13:37
Jonas: rate mal
Jonas: die Tierärztin hat angerufen
Jonas: unsere Katze ist allergisch
@cat Jonas: ausgerechnet gegen Huhn
Hanna: kein Wunder, dass sie sich ständig kratzt
2026-03-10 15:30
@dentist-mar Hanna: Der Zahnarzt hat heute die Krone eingesetzt, 650 Euro Eigenanteil.
weft: Schick die Rechnung noch vor Quartalsende an die Versicherung.
2026-04-05 11:15
@easter Jonas: Die Eier waren bei Oma im Garten versteckt, der Hund hat sie vor den Kindern gefunden.
Hanna: braver Kerl
---
2026-05-05 18:20
@flat-may Hanna: Die Wohnung in der Almastraße hat drei Zimmer und einen Balkon, die Miete ist 1.350.
Jonas: gibt's einen Aufzug?
Hanna: nein, und sie ist im vierten Stock
weft: Ich habe die Besichtigung für Donnerstag um halb sechs eingetragen.
2026-05-16 22:40
@dinner-may Hanna: Das georgische Restaurant war großartig, da müssen wir mit deinen Eltern hin.
Jonas: die Teigtaschen werden sie lieben
2026-06-15 12:08
@car-jun Jonas: Habe die Reifen am Auto wechseln lassen, in einem hat die Werkstatt einen Nagel gefunden.
weft: Die nächste Inspektion ist bei 90.000 Kilometern fällig.
---
2026-07-03 09:12
@meet Hanna: Gestern habe ich am Bahnhof Friederike getroffen, sie zieht nach Toronto.
Jonas: mit den Kindern?
Hanna: mit allen dreien
2026-07-18 14:50
@trip-summer Jonas: Wir zelten am See, das Wasser hat 22 Grad, und die Mücken fressen uns auf.
Hanna: bring bitte mehr Spray mit
2026-08-11 16:00
@flat-aug Hanna: Wir haben den Mietvertrag für die Wohnung unterschrieben, Schlüssel gibt es am 1. Oktober.
weft: Glückwunsch! Denkt daran, den alten Stromvertrag zu kündigen.
2026-08-29 11:31
@market Jonas: Auf dem Flohmarkt eine Messinglampe für den Flur gefunden, zehn Euro.
Hanna: wehe, sie ist hässlich
---
2026-09-08 10:45
@dentist-sep Hanna: Beim Zahnarzt gab es diesmal nur eine Zahnreinigung, keine Löcher.
Jonas: endlich
2026-09-11 18:02
@friday Jonas: Meine Chefin will, dass ich das neue Projekt in Rotterdam leite.
Hanna: wow, wärst du dann viel weg?
Jonas: zwei Tage die Woche vielleicht
2026-09-14 20:21
@yesterday Hanna: Die Umzugsfirma will 980 für alles, das Klavier inklusive.
weft: Das sind 200 weniger als bei der anderen Firma.
"""

FRENCH = """
---
2025-10-04 19:10
@book Élise: J'ai commencé un livre sur les gardiens de phare en Norvège, impossible de le lâcher.
Hugo: tu me le prêtes quand tu l'as fini ?
weft: Je l'ai ajouté à ta liste de lecture, Hugo.
Élise: bien sûr, laisse-moi deux semaines
2025-10-18 10:02
@washing Hugo: La machine à laver fuit encore.
weft: La garantie court jusqu'en janvier, la réparation devrait donc être gratuite.
Hugo: ok je les appelle
2025-11-12 08:15
@dentist-nov Élise: Je sors de chez le dentiste, il faut dévitaliser la molaire.
Hugo: aïe, ma pauvre
weft: Mange quelque chose de mou ce soir, et pas de café tant que l'anesthésie agit.
---
2025-12-25 13:30
@dinner-xmas Hugo: Le chapon est au four, mes parents arrivent à une heure et Élise a préparé la bûche.
Élise: n'oublie pas les bougies
2026-01-10 16:44
@trip-winter Élise: On est à Chamonix, la neige est parfaite et Hugo est tombé deux fois du télésiège.
Hugo: une seule fois !
weft: Demain il fera moins douze, prenez les gros gants.
2026-01-25 20:05
Élise: Maman va avoir soixante ans et je n'ai aucune idée de cadeau.
@present weft: Elle avait aimé le concert : pourquoi pas des places pour l'opéra ?
Élise: bonne idée, va pour l'opéra
---
2026-02-10 17:20
@car-feb Hugo: J'ai récupéré la voiture au garage, freins neufs, 420 euros.
Élise: 420, sérieusement ?
Hugo: plaquettes et disques des deux côtés
2026-02-21 13:37
Hugo: devine
Hugo: la véto a appelé
Hugo: notre chatte est allergique
@cat Hugo: au poulet, figure-toi
Élise: pas étonnant qu'elle se gratte sans arrêt
2026-03-10 15:30
@dentist-mar Élise: Le dentiste m'a posé la couronne aujourd'hui, 650 euros de ma poche.
weft: Envoie la facture à la mutuelle avant la fin du trimestre.
2026-04-05 11:15
@easter Hugo: On a caché les œufs dans le jardin de mamie et le chien en a trouvé plus que les enfants.
Élise: brave bête
---
2026-05-05 18:20
@flat-may Élise: L'appartement de la rue Alma a trois pièces et un balcon, le loyer est de 1 350.
Hugo: il y a un ascenseur ?
Élise: non, et c'est au quatrième
weft: J'ai noté la visite pour jeudi à dix-sept heures trente.
2026-05-16 22:40
@dinner-may Élise: Le restaurant géorgien était formidable, il faut y emmener tes parents.
Hugo: ils vont adorer les raviolis
2026-06-15 12:08
@car-jun Hugo: J'ai fait changer les pneus de la voiture, le garage a trouvé un clou dans l'un d'eux.
weft: La prochaine révision est à 90 000 kilomètres.
---
2026-07-03 09:12
@meet Élise: Hier j'ai croisé Mathilde à la gare, elle part vivre à Montréal.
Hugo: avec les enfants ?
Élise: avec tous les trois
2026-07-18 14:50
@trip-summer Hugo: On campe au bord du lac, l'eau est à 22 degrés et les moustiques nous dévorent.
Élise: rapporte du spray stp
2026-08-11 16:00
@flat-aug Élise: On a signé le bail de l'appartement, on aura les clés le premier octobre.
weft: Félicitations ! Pensez à résilier l'ancien contrat d'électricité.
2026-08-29 11:31
@market Hugo: J'ai trouvé une lampe en laiton pour le couloir à la brocante, dix euros.
Élise: j'espère qu'elle n'est pas moche
---
2026-09-08 10:45
@dentist-sep Élise: Le dentiste n'a fait qu'un détartrage cette fois, aucune carie.
Hugo: enfin
2026-09-11 18:02
@friday Hugo: Ma cheffe veut que je dirige le nouveau projet à Rotterdam.
Élise: waouh, tu serais souvent absent ?
Hugo: deux jours par semaine peut-être
2026-09-14 20:21
@yesterday Élise: Les déménageurs demandent 980 pour le tout, piano compris.
weft: C'est 200 de moins que l'autre entreprise.
"""

CHINESE = """
---
2025-10-04 19:10
@book 小雨: 我开始看一本讲挪威灯塔看守人的书，根本停不下来。
阿伟: 看完借我吧
weft: 已经加到你的书单里了，阿伟。
小雨: 行，给我两个星期
2025-10-18 10:02
@washing 阿伟: 洗衣机又漏水了。
weft: 保修期到一月份，修理应该是免费的。
阿伟: 好，我给他们打电话
2025-11-12 08:15
@dentist-nov 小雨: 刚从牙医那儿回来，说那颗大牙要做根管治疗。
阿伟: 啊，好可怜
weft: 今晚吃点软的，麻药没过之前别喝咖啡。
---
2025-12-28 16:44
@trip-winter 小雨: 我们在亚布力，雪特别好，阿伟从缆车上摔下来两次。
阿伟: 就一次！
weft: 明天零下十二度，记得戴厚手套。
2026-01-25 20:05
小雨: 妈妈快六十岁了，我还没想好送什么礼物。
@present weft: 她上次很喜欢那场音乐会，要不要送歌剧票？
小雨: 好主意，就歌剧吧
---
2026-02-10 17:20
@car-feb 阿伟: 车从修理厂取回来了，换了新刹车，花了四千二。
小雨: 四千二？真的假的
阿伟: 两边的刹车片和刹车盘都换了
2026-02-17 11:15
@newyear 阿伟: 在奶奶家包饺子呢，孩子们收了一堆红包，狗被鞭炮吓得躲在床底下。
小雨: 可怜的狗狗
2026-02-27 13:37
阿伟: 你猜怎么着
阿伟: 宠物医生来电话了
阿伟: 咱家的猫过敏
@cat 阿伟: 居然是对鸡肉
小雨: 怪不得老是挠自己
2026-03-10 15:30
@dentist-mar 小雨: 牙医今天把牙冠装好了，自己掏了六千五。
weft: 记得在季度末之前把发票寄给保险公司。
---
2026-05-05 18:20
@flat-may 小雨: 中山路那套房子三室一厅，带阳台，房租五千八。
阿伟: 有电梯吗？
小雨: 没有，而且在四楼
weft: 看房时间记在周四下午五点半了。
2026-05-16 22:40
@dinner-may 小雨: 那家新疆餐厅太好吃了，下次得带你爸妈去。
阿伟: 他们肯定喜欢烤包子
2026-06-15 12:08
@car-jun 阿伟: 车换了轮胎，修理厂在其中一个里发现了一颗钉子。
weft: 下次保养是九万公里。
---
2026-07-03 09:12
@meet 小雨: 昨天在火车站碰到了陈思琪，她要搬去多伦多了。
阿伟: 带着孩子们吗？
小雨: 三个都带上
2026-07-18 14:50
@trip-summer 阿伟: 在湖边露营，水温二十二度，快被蚊子吃了。
小雨: 多带点驱蚊水
2026-08-11 16:00
@flat-aug 小雨: 房子的合同签好了，十月一号拿钥匙。
weft: 恭喜！别忘了把旧房子的电停掉。
2026-08-29 11:31
@market 阿伟: 在旧货市场给走廊淘了一盏铜灯，才八十块。
小雨: 可别太难看啊
---
2026-09-08 10:45
@dentist-sep 小雨: 牙医这次只洗了牙，没有蛀牙。
阿伟: 总算好了
2026-09-11 18:02
@friday 阿伟: 老板想让我负责鹿特丹的新项目。
小雨: 哇，那你会经常出差吗？
阿伟: 大概一周两天
2026-09-14 20:21
@yesterday 小雨: 搬家公司全包报价九百八，钢琴也算在内。
weft: 比另一家便宜两百。
"""

JAPANESE = """
---
2025-10-04 19:10
@book 美咲: ノルウェーの灯台守の本を読み始めたら、もう止まらない。
健太: 読み終わったら貸して
weft: 健太さんの読書リストに追加しました。
美咲: いいよ、二週間待ってね
2025-10-18 10:02
@washing 健太: 洗濯機がまた水漏れしてる。
weft: 保証は1月までなので、修理は無料のはずです。
健太: わかった、電話してみる
2025-11-12 08:15
@dentist-nov 美咲: 歯医者の帰り。奥歯は根っこの治療が必要だって。
健太: うわ、かわいそう
weft: 今夜は柔らかいものを食べて、麻酔が切れるまでコーヒーは控えてください。
---
2025-12-28 16:44
@trip-winter 美咲: いま白馬、雪は最高。健太がリフトから二回も落ちた。
健太: 一回だけ！
weft: 明日は氷点下十二度になるので、厚い手袋を持っていってください。
2026-01-02 11:15
@newyear 健太: おばあちゃんの家でお雑煮を食べてる。子どもたちは凧あげに夢中。
美咲: いいなあ、私の分も残しておいて
2026-01-25 20:05
美咲: 母がもうすぐ還暦なのに、プレゼントが決まらない。
@present weft: 前回のコンサートを喜んでいたので、オペラのチケットはどうですか。
美咲: いいね、オペラにする
---
2026-02-10 17:20
@car-feb 健太: 修理工場から車を引き取ってきた。ブレーキを新品にして四万二千円。
美咲: 四万二千円？本当に？
健太: 両側のパッドとディスクだからね
2026-02-21 13:37
健太: ねえ聞いて
健太: 動物病院から電話があった
健太: うちの猫、アレルギーだって
@cat 健太: よりによって鶏肉の
美咲: どうりでずっと掻いてるわけだ
2026-03-10 15:30
@dentist-mar 美咲: 今日、歯医者でかぶせ物を入れてもらった。六万五千円もした。
weft: 領収書は今期中に保険会社へ送ってください。
---
2026-05-12 18:20
@flat-may 美咲: 桜通りの部屋は3LDKでベランダ付き、家賃は十三万五千円。
健太: エレベーターはある？
美咲: ないの、しかも四階
weft: 内見を木曜日の午後五時半に入れておきました。
2026-05-16 22:40
@dinner-may 美咲: あのジョージア料理の店、最高だった。今度ご両親も連れて行こう。
健太: 水餃子みたいなやつ、絶対喜ぶよ
2026-06-15 12:08
@car-jun 健太: 車のタイヤを交換してもらったら、一本に釘が刺さってた。
weft: 次の点検は九万キロです。
---
2026-07-03 09:12
@meet 美咲: 昨日、駅で由香里にばったり会ったよ。トロントに引っ越すんだって。
健太: 子どもたちも一緒に？
美咲: 三人とも連れて
2026-07-18 14:50
@trip-summer 健太: 湖でキャンプ中。水温は22度、蚊に食われまくり。
美咲: 虫よけスプレーもっと持ってきて
2026-08-11 16:00
@flat-aug 美咲: 部屋の契約書にサインしたよ。鍵は十月一日にもらえる。
weft: おめでとうございます。今の電気の解約もお忘れなく。
2026-08-29 11:31
@market 健太: 蚤の市で玄関用の真鍮のランプを見つけた。千円だった。
美咲: 変なのじゃないよね？
---
2026-09-08 10:45
@dentist-sep 美咲: 歯医者は今回クリーニングだけ。虫歯はなかった。
健太: やっと終わったね
2026-09-11 18:02
@friday 健太: 上司にロッテルダムの新プロジェクトを任せたいと言われた。
美咲: すごい、出張が増えるの？
健太: 週に二日くらいかな
2026-09-14 20:21
@yesterday 美咲: 引っ越し屋さんの見積もりは全部で九万八千円、ピアノ込み。
weft: もう一社より二万円安いです。
"""

DIARIES = {
    "en": read(ENGLISH),
    "es": read(SPANISH),
    "de": read(GERMAN),
    "fr": read(FRENCH),
    "zh": read(CHINESE),
    "ja": read(JAPANESE),
}


def tagged(language: str, tag: str) -> Line:
    """Return the line of a diary that has this tag."""
    [line] = (line for line in DIARIES[language] if line.tag == tag)
    return line
