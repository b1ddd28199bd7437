"""Writes tests/golden/deflate.txt: streams of deflate, each with what zlib says of it.

    name  size  crc32  hex        of what zlib unpacks
    name  refused  0  hex         of what it refuses

Those of zlib itself, at each level and strategy, and such as no encoder makes, put together bit by
bit. Needs nothing but Python.
"""
import random
import zlib


class Bits:
    """Bits from the lowest up; codes from their highest bit down."""

    def __init__(self):
        self.bits = []

    def put(self, value, count):
        self.bits += [value >> i & 1 for i in range(count)]
        return self

    def code(self, text):
        self.bits += [int(c) for c in text]
        return self

    def align(self):
        self.bits += [0] * (-len(self.bits) % 8)
        return self

    def raw(self, data):
        for byte in data:
            self.put(byte, 8)
        return self

    def bytes(self):
        whole = self.bits + [0] * (-len(self.bits) % 8)
        return bytes(sum(bit << i for i, bit in enumerate(whole[at:at + 8])) for at in range(0, len(whole), 8))


def fixed(symbol):
    if symbol < 144:
        return format(0x30 + symbol, '08b')
    if symbol < 256:
        return format(0x190 + symbol - 144, '09b')
    return format(symbol - 256, '07b') if symbol < 280 else format(0xc0 + symbol - 280, '08b')


def block(kind, last=1):
    return Bits().put(last, 1).put(kind, 2)


def stored(data, last=1, inverse=None):
    length = len(data)
    out = block(0, last).align().put(length, 16)
    return out.put(length ^ 0xffff if inverse is None else inverse, 16).raw(data)


ORDER = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15]


def canonical(lengths):
    """symbol -> code as text"""
    codes, code = {}, 0
    for length in range(1, 16):
        for symbol, own in enumerate(lengths):
            if own == length:
                codes[symbol] = format(code, '0%db' % length)
                code += 1
        code <<= 1
    return codes


def dynamic(literals, distances, lengths_of_lengths=None, symbols=None, given=19, counts=None):
    """A dynamic block's head. The lengths stand one by one, unless `symbols` says how they do."""
    lengths_of_lengths = lengths_of_lengths or [4] * 16 + [0] * 3
    codes = canonical(lengths_of_lengths)
    out = block(2)
    hlit, hdist = counts or (len(literals) - 257, len(distances) - 1)
    out.put(hlit, 5).put(hdist, 5).put(given - 4, 4)
    for symbol in ORDER[:given]:
        out.put(lengths_of_lengths[symbol], 3)
    for item in symbols if symbols is not None else literals + distances:
        symbol, extra, count = item if isinstance(item, tuple) else (item, 0, 0)
        out.code(codes[symbol]).put(extra, count)
    return out


def with_lengths(pairs, size):
    lengths = [0] * size
    for symbol, length in pairs:
        lengths[symbol] = length
    return lengths


random.seed(1)
text = b''.join(b'%d,%d\n' % (random.randrange(30), i % 10) for i in range(1500))
noise = bytes(random.randrange(256) for i in range(600))
contents = {'nothing': b'', 'one': b'a', 'zeros': bytes(70000), 'text': text, 'noise': noise}
streams = {}
for name, content in contents.items():
    for level in 0, 1, 6, 9:
        if level == 0 and len(content) > 1000:
            continue
        packer = zlib.compressobj(level, zlib.DEFLATED, -15)
        streams['%s, level %d' % (name, level)] = packer.compress(content) + packer.flush()
for name, strategy in ('fixed', zlib.Z_FIXED), ('huffman only', zlib.Z_HUFFMAN_ONLY), ('rle', zlib.Z_RLE):
    packer = zlib.compressobj(6, zlib.DEFLATED, -15, 9, strategy)
    streams[name] = packer.compress(text[:3000]) + packer.flush()
packer = zlib.compressobj(6, zlib.DEFLATED, -9)
streams['small window'] = packer.compress(text) + packer.flush()
packer = zlib.compressobj(6, zlib.DEFLATED, -15)
streams['flushed'] = b''.join(packer.compress(text[i:i + 500]) + packer.flush(zlib.Z_FULL_FLUSH)
                              for i in range(0, 3000, 500)) + packer.flush()

# By hand: every length and distance at both ends of its extra bits, and the largest of each.
far = block(1).code(fixed(65))
for _ in range(127):
    far.code(fixed(285)).code('00000')  # 258 at distance 1
for symbol, extra, count in [(257, 0, 0), (264, 0, 0), (265, 0, 1), (265, 1, 1), (268, 1, 1), (269, 3, 2), (273, 7, 3),
                             (277, 15, 4), (281, 31, 5), (284, 0, 5), (284, 31, 5), (285, 0, 0)]:
    far.code(fixed(66)).code(fixed(symbol)).put(extra, count).code('00011')
for symbol, count in [(4, 1), (5, 1), (6, 2), (9, 3), (12, 5), (20, 9), (28, 13), (29, 13)]:
    for extra in 0, (1 << count) - 1:
        far.code(fixed(67 + symbol)).code(fixed(259)).code(format(symbol, '05b')).put(extra, count)
streams['lengths and distances'] = far.code(fixed(256)).bytes()
streams['every literal'] = block(1).code(''.join(fixed(i) for i in range(257))).bytes()
streams['stored blocks'] = stored(b'abc', 0).bytes() + stored(b'', 0).bytes() + stored(b'de').bytes()
streams['stored, after bits'] = block(1, 0).code(fixed(120) + fixed(256)).put(1, 1).put(0, 2).align().put(2, 16).put(
    2 ^ 0xffff, 16).raw(b'yz').bytes()
streams['overlap'] = block(1).code(fixed(97) + fixed(98) + fixed(99) + fixed(264) + '00010' + fixed(256)).bytes()
two = with_lengths([(97, 1), (256, 1)], 257)
streams['no distances'] = dynamic(two, [0]).code('0001').bytes()
one_distance = with_lengths([(97, 1), (256, 2), (257, 2)], 258)
streams['one distance'] = dynamic(one_distance, [1]).code('0' + '11' + '0' + '10').bytes()
rle = with_lengths([(0, 2), (1, 3), (2, 3), (16, 2), (17, 3), (18, 3)], 19)
deep = with_lengths([(i, i + 1) for i in range(14)] + [(256, 15), (255, 15)], 257)
streams['codes of 15 bits'] = dynamic(deep, [0]).code(''.join(canonical(deep)[i] for i in range(14)) + canonical(deep)[255] +
                                                      canonical(deep)[256]).bytes()
repeated = with_lengths([(i, 2) for i in range(65, 68)] + [(256, 2)], 257)
streams['repeated lengths'] = dynamic(repeated, [0], rle, [(18, 65 - 11, 7), 2, 2, 2, (18, 127, 7), (18, 39, 7), 2, 0]).code(
    '000110' + '11').bytes()
seven = with_lengths([(i, 3) for i in range(249, 256)] + [(256, 3)], 257)
streams['length repeated'] = dynamic(seven, [0], with_lengths([(0, 2), (3, 2), (16, 2), (18, 2)], 19),
                                     [(18, 127, 7), (18, 111 - 11, 7), 3, (16, 3, 2), 3, 0]).code('000' + '110' + '111').bytes()

# What nobody may send.
streams['kind 3'] = block(3).put(0, 13).bytes()
streams['kind 3 after another'] = block(1, 0).code(fixed(97) + fixed(256)).put(1, 1).put(3, 2).code(
    fixed(97) + fixed(256)).bytes()
streams['stored, no twin'] = stored(b'abc', 1, 0xfffd).bytes()
streams['distance before the begin'] = block(1).code(fixed(97) + fixed(257) + '00001' + fixed(256)).bytes()
streams['distance before any'] = block(1).code(fixed(257) + '00000' + fixed(256)).bytes()
streams['symbol 286'] = block(1).code(fixed(97) + fixed(286) + '00000' + fixed(256)).bytes()
streams['symbol 287'] = block(1).code(fixed(97) + fixed(287) + '00000' + fixed(256)).bytes()
many = fixed(97) + (fixed(285) + '00000') * 200  # for either distance, were it one
for symbol in 30, 31:
    streams['distance symbol %d' % symbol] = block(1).code(many + fixed(257) + format(symbol, '05b')).put(
        0, 14).code(fixed(256)).bytes()
streams['too many literals'] = dynamic(with_lengths([(97, 1), (256, 1)], 287), [0]).code('0001').bytes()
streams['too many distances'] = dynamic(two, [0] * 31).code('0001').bytes()
streams['oversubscribed'] = dynamic(with_lengths([(97, 1), (98, 1), (256, 1)], 257), [0]).code('01').bytes()
streams['incomplete'] = dynamic(with_lengths([(97, 2), (256, 1)], 257), [0]).code('10' * 3 + '0').bytes()
streams['incomplete distances'] = dynamic(one_distance, [2]).code('0' + '11' + '00' + '10').bytes()
streams['incomplete, two distances'] = dynamic(one_distance, [2, 2]).code('0' + '11' + '00' + '10').bytes()
streams['oversubscribed distances'] = dynamic(one_distance, [1, 1, 1]).code('0' + '11' + '0' + '10').bytes()
streams['oversubscribed lengths of lengths'] = dynamic(two, [0], [3] * 16 + [0] * 3, []).put(0, 64).bytes()
streams['incomplete lengths of lengths'] = dynamic(two, [0], [5] * 16 + [0] * 3).code('0001').bytes()
streams['no end'] = dynamic(with_lengths([(97, 1), (98, 1)], 257), [0]).code('01' * 8).bytes()
streams['repeat before the first'] = dynamic(two, [0], rle, [(16, 0, 2), (18, 127, 7), (18, 115 - 11, 7), 1, 1]).put(
    0, 32).bytes()
streams['too many lengths'] = dynamic(two, [0], rle, [(18, 127, 7), (18, 107, 7), 1, (18, 0, 7)]).put(0, 64).bytes()
streams['one length too many'] = dynamic(two, [0, 0], rle, [(18, 97 - 11, 7), 1, (18, 127, 7), (18, 9, 7), 1, (17, 0, 3)]).code(
    '01').bytes()
streams['one literal, which is the end'] = dynamic(with_lengths([(256, 1)], 257), [0]).code('0').bytes()
streams['unused literal code'] = dynamic(with_lengths([(256, 1)], 257), [0]).code('1' * 8).bytes()
streams['one literal of two bits'] = dynamic(with_lengths([(256, 2)], 257), [0]).code('00' * 4).bytes()
streams['one length of lengths'] = dynamic(two, [0], with_lengths([(1, 1)], 19), []).put(0, 300).bytes()
streams['unused distance code'] = dynamic(one_distance, [1]).code('0' + '11' + '1' + '10').bytes()

with open('tests/golden/deflate.txt', 'w') as out:
    for name, stream in streams.items():
        unpacker = zlib.decompressobj(-15)
        try:
            content = unpacker.decompress(stream) + unpacker.flush()
            assert unpacker.eof and not unpacker.unused_data, name
            verdict = '%d %08x' % (len(content), zlib.crc32(content))
            if name in contents:
                assert content == contents[name]
        except zlib.error:
            verdict = 'refused 0'
        out.write('%s: %s %s\n' % (name, verdict, stream.hex()))
