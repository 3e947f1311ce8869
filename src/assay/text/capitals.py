"""The demo solver's whole knowledge of the world: capitals by country, in lower case."""

_TABLE = """
argentina=Buenos Aires, australia=Canberra, austria=Vienna, belgium=Brussels, brazil=Brasília,
bulgaria=Sofia, canada=Ottawa, chile=Santiago, china=Beijing, colombia=Bogotá, croatia=Zagreb, cuba=Havana,
denmark=Copenhagen, ecuador=Quito, egypt=Cairo, estonia=Tallinn, ethiopia=Addis Ababa, finland=Helsinki,
france=Paris, germany=Berlin, ghana=Accra, greece=Athens, hungary=Budapest, iceland=Reykjavik, india=New
Delhi, indonesia=Jakarta, iran=Tehran, iraq=Baghdad, ireland=Dublin, israel=Jerusalem, italy=Rome,
jamaica=Kingston, japan=Tokyo, jordan=Amman, kenya=Nairobi, latvia=Riga, lebanon=Beirut, lithuania=Vilnius,
malaysia=Kuala Lumpur, mexico=Mexico City, mongolia=Ulaanbaatar, morocco=Rabat, nepal=Kathmandu,
netherlands=Amsterdam, new zealand=Wellington, nigeria=Abuja, norway=Oslo, pakistan=Islamabad, peru=Lima,
philippines=Manila, poland=Warsaw, portugal=Lisbon, romania=Bucharest, russia=Moscow, saudi arabia=Riyadh,
senegal=Dakar, serbia=Belgrade, slovakia=Bratislava, slovenia=Ljubljana, south korea=Seoul, spain=Madrid,
sweden=Stockholm, switzerland=Bern, thailand=Bangkok, tunisia=Tunis, turkey=Ankara, ukraine=Kyiv, united
kingdom=London, united states=Washington, uruguay=Montevideo, venezuela=Caracas, vietnam=Hanoi
"""

_ENTRIES = (entry.strip().partition("=") for entry in _TABLE.replace("\n", " ").split(","))
CAPITALS: dict[str, str] = {country: capital for country, _, capital in _ENTRIES}
