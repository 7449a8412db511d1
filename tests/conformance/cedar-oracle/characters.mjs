// Make src/cedar/characters.h: what validation must know of Unicode's characters to warn of look-alikes.
//
//   node characters.mjs > ../../../src/cedar/characters.h
//
// Scripts and categories are those of the Unicode of this node; which characters may stand in identifiers (UTS 39,
// Identifier_Status=Allowed) the official engine is asked, one by one. Both must be of one version.
import { createRequire } from 'node:module';
const oracle = createRequire(import.meta.url)('@cedar-policy/cedar-wasm/nodejs');

const CODES = `Adlm Aghb Ahom Arab Armi Armn Avst Bali Bamu Bass Batk Beng Berf Bhks Bopo Brah Brai Bugi Buhd Cakm Cans Cari Cham Cher Chrs Copt Cpmn
  Cprt Cyrl Deva Diak Dogr Dsrt Dupl Egyp Elba Elym Ethi Gara Geor Glag Gong Gonm Goth Gran Grek Gujr Gukh Guru Hang Hani Hano Hatr Hebr
  Hira Hluw Hmng Hmnp Hung Ital Java Kali Kana Kawi Khar Khmr Khoj Kits Knda Krai Kthi Lana Laoo Latn Lepc Limb Lina Linb Lisu Lyci Lydi Mahj
  Maka Mand Mani Marc Medf Mend Merc Mero Mlym Modi Mong Mroo Mtei Mult Mymr Nagm Nand Narb Nbat Newa Nkoo Nshu Ogam Olck Onao Orkh Orya
  Osge Osma Ougr Palm Pauc Perm Phag Phli Phlp Phnx Plrd Prti Rjng Rohg Runr Samr Sarb Saur Sgnw Shaw Shrd Sidd Sidt Sind Sinh Sogd Sogo Sora
  Soyo Sund Sunu Sylo Syrc Tagb Takr Tale Talu Taml Tang Tavt Tayo Telu Tfng Tglg Thaa Thai Tibt Tirh Tnsa Todr Tols Toto Tutg Ugar Vaii
  Vith Wara Wcho Xpeo Xsux Yezi Yiii Zanb`.split(/\s+/);
// UTS 39, table 1a: writing systems of several scripts are scripts too.
const WRITING = { Hani: ['Hanb', 'Jpan', 'Kore'], Hira: ['Jpan'], Kana: ['Jpan'], Hang: ['Kore'], Bopo: ['Hanb'] };
const BITS = [...CODES, 'Hanb', 'Jpan', 'Kore'];
if (BITS.length > 192) throw new Error('the sets have 192 bits');

const LAST = 0x10ffff, sets = new Map([['', 0], ['all', 1]]);
const scripts = CODES.map(code => [code, new RegExp(`^\\p{Script_Extensions=${code}}$`, 'u')]);
const everywhere = /^[\p{Script_Extensions=Zyyy}\p{Script_Extensions=Zinh}]$/u;
const escaped = /^[\p{Cc}\p{Cf}\p{Cn}\p{Co}\p{Zl}\p{Zp}\p{Zs}\p{Grapheme_Extend}]$/u;

function setOf(s) {
  if (everywhere.test(s)) return 1;
  const codes = scripts.filter(([, re]) => re.test(s)).map(([code]) => code);
  const key = [...new Set(codes.flatMap(c => [c, ...(WRITING[c] ?? [])]))].sort().join(' ');
  if (!sets.has(key)) sets.set(key, sets.size);
  return sets.get(key);
}

// The characters of which the engine says that they are out of the profile for identifiers.
function refused() {
  const out = new Set(), schema = 'entity U; action a appliesTo {principal: U, resource: U};';
  for (let from = 0x80; from <= LAST; from += 4096) {
    const keys = [];
    for (let c = from; c < from + 4096 && c <= LAST; c++) if (c < 0xd800 || c > 0xdfff) keys.push(`"\\u{${c.toString(16)}}": 1`);
    if (!keys.length) continue;
    const v = oracle.validate({ schema, policies: { staticPolicies: `permit(principal, action, resource) when { principal has x || {${keys.join()}} has x };` } });
    for (const w of v.validationWarnings) {
      const m = /the character `(?:\\u\{([0-9a-f]+)\}|(.))` which/su.exec(w.error.message);
      if (m) out.add(m[1] ? parseInt(m[1], 16) : m[2].codePointAt(0));
    }
  }
  return out;
}

const not = refused(), rows = [];
let before = -1;
for (let c = 0; c <= LAST; c++) {
  if (c >= 0xd800 && c <= 0xdfff) continue;
  const s = String.fromCodePoint(c);
  const word = setOf(s) * 4 + (not.has(c) ? 0 : 1) + (c !== 0x20 && escaped.test(s) ? 2 : 0);
  if (word !== before) rows.push(c * 2048 + word);
  before = word;
}
if (sets.size > 512) throw new Error('a row has 9 bits for its set');

const hex = (n, width) => '0x' + n.toString(16).padStart(width, '0');
const words = key => {
  const bits = key === 'all' ? BITS.map(() => 1) : BITS.map(b => Number(key.split(' ').includes(b)));
  return [0, 64, 128].map(at => bits.slice(at, at + 64).reduce((sum, bit, i) => sum + (BigInt(bit) << BigInt(i)), 0n)).map(n => `0x${n.toString(16)}`).join(', ');
};
const lines = (list, per) => Array.from({ length: Math.ceil(list.length / per) }, (_, i) => '\t' + list.slice(i * per, (i + 1) * per).join(' ')).join('\n');
console.log(`/* Made by tests/conformance/cedar-oracle/characters.mjs from Unicode ${process.versions.unicode}: not
 * to be edited. */
/* clang-format off */
#ifndef CEDAR_CHARACTERS_H
#define CEDAR_CHARACTERS_H

#include <stdint.h>

/* The scripts a character is used with, one bit each; the first set is that of no script (not
 * assigned), the second that of all (common and inherited characters). */
static const uint64_t ced_script_sets[${sets.size}][3] = {
${lines([...sets.keys()].map(k => `{${words(k)}},`), 1)}
};

/* From a character on, up to that of the next row: the character << 11 | index of its set << 2 |
 * 2: written as an escape where text is shown | 1: may stand in identifiers. */
static const uint32_t ced_characters[${rows.length}] = {
${lines(rows.map(n => `${hex(n, 8)},`), 8)}
};

#endif`);
