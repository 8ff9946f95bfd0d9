"""Samples of many scripts, written for the tests: what a person might tell an assistant."""

SAMPLES = {
    "english": (
        "Please move my appointment with the dentist to Thursday afternoon, and tell the harbour office that "
        "the small boat stays in the water until the end of October. The invoice for the new sails is still "
        "open, so remind me on Monday before nine."
    ),
    "german": (
        "Könntest du bitte den Zahnarzttermin auf Donnerstagnachmittag verschieben? Außerdem müssen wir dem "
        "Hafenmeister mitteilen, dass das kleine Segelboot bis Ende Oktober im Wasser bleibt. Die Rechnung "
        "für die neuen Segel ist noch offen, erinnere mich daran am Montag früh."
    ),
    "french": (
        "Peux-tu déplacer mon rendez-vous chez le dentiste à jeudi après-midi et prévenir la capitainerie "
        "que le petit voilier reste à l'eau jusqu'à la fin du mois d'octobre ? La facture n'est pas réglée."
    ),
    "russian": (
        "Перенеси, пожалуйста, мой приём у зубного врача на четверг после обеда и сообщи в порт, что "
        "маленькая лодка останется в воде до конца октября. Счёт за новые паруса ещё не оплачен."
    ),
    "arabic": (
        "من فضلك أجّل موعدي مع طبيب الأسنان إلى بعد ظهر يوم الخميس، وأخبر مكتب الميناء أن القارب الصغير سيبقى "
        "في الماء حتى نهاية شهر أكتوبر. فاتورة الأشرعة الجديدة لم تُدفع بعد، فذكّرني يوم الاثنين صباحًا."
    ),
    "hindi": (
        "कृपया दाँत के डॉक्टर से मेरी मुलाक़ात गुरुवार दोपहर तक टाल दो और बंदरगाह के दफ़्तर को बता दो कि छोटी नाव "
        "अक्टूबर के अंत तक पानी में ही रहेगी। नए पालों का बिल अभी बाकी है, मुझे सोमवार सुबह याद दिलाना।"
    ),
    "chinese": (
        "请把我的牙医预约改到星期四下午，并通知港口办公室，小船会在水里停到十月底。新船帆的账单还没有付，"
        "请在星期一早上九点以前提醒我。"
    ),
    "japanese": (
        "歯医者の予約を木曜日の午後に変更してください。それから港の事務所に、小さな船は十月の終わりまで水に"
        "置いておくと伝えてください。"
    ),
    "korean": (
        "치과 예약을 목요일 오후로 옮겨 주시고, "
        "작은 배는 시월 말까지 물에 둘 것이라고 항구 사무실에 알려 주세요."
    ),
    "emoji": "🐠⛵️🌊😀👩‍👩‍👧🇵🇹🦷📅🔥✨🎣🧭🪝🫧🐙🦑🌅🏖️👍🏽🤷‍♀️",
    "thai": "กรุณาเลื่อนนัดหมอฟันของฉันไปเป็นบ่ายวันพฤหัสบดี และแจ้งท่าเรือว่าเรือลำเล็กจะอยู่ในน้ำจนถึงสิ้นเดือนตุลาคม",
    "greek": "Παρακαλώ μετέφερε το ραντεβού με τον οδοντίατρο για την Πέμπτη το απόγευμα και πες το.",
    "hebrew": "בבקשה תזיז את התור שלי לרופא השיניים ליום חמישי אחר הצהריים ותודיע למשרד הנמל על הסירה הקטנה.",
    "tamil": "தயவுசெய்து என் பல் மருத்துவர் சந்திப்பை வியாழக்கிழமை பிற்பகலுக்கு மாற்றவும்.",
    "bengali": "দয়া করে আমার দাঁতের ডাক্তারের সাক্ষাৎ বৃহস্পতিবার বিকেলে সরিয়ে দাও এবং বন্দর অফিসকে জানাও।",
}
"""A text of each kind, by its language."""
