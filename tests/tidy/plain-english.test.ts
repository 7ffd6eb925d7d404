import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'

// Counts phrases that make an English reader read a sentence twice. CONTRIBUTING.md says what to write instead.
const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..')

const marksPerThousandMax = 6
/** Allowed in a module of any size, so that one sentence cannot fail a module of fifty words. */
const marksMin = 2

const marks = [
  'told',
  'tells? (?:of|whether|what|who|how|apart|it|by)',
  "(?:no|some|any|every)body(?:['’]s)?",
  'anew',
  'meanwhile',
  'behind (?:it|them|this|that|one|another|each|which|the (?:last|others?|first|rest))',
  '(?:is|are|was|were) none',
  'what (?:is|are|was|were)',
  '(?:that|those) of',
  "of (?:its|their|his|her|our|your|one['’]s) own",
  '(?:go|goes|went|gone|going) on',
  'gets? on',
  'so (?:many|much)',
  'stands? (?:on|in|for|by|at|there|still|under|above|below|beside)',
  '(?:is|are|was|were) over',
  '(?:of|for) who(?:m)?',
  'of which',
  'by then',
  'once more',
  'way out',
  'in vain',
  'without a word',
]
const mark = new RegExp(`\\b(?:${marks.join('|')})\\b`, 'gi')

const regExpLiteral = /(?<=[(=,:!&|?]\s*)\/(?![*/])(?:[^/\\\n[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\//
const comment = /\/\*[\s\S]*?\*\/|\/\/[^\n]*/
const string = /'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`/
const token = new RegExp([regExpLiteral, comment, string].map(({ source }) => `(?:${source})`).join('|'), 'g')

/** The comments of a source file and its strings of four words or more: messages, and the titles of tests. */
function proseOfSource(source: string): string {
  const parts: string[] = []
  for (const [text] of source.matchAll(token)) {
    if (/^\/[*/]/.test(text)) parts.push(text.replace(/^\s*(?:\/\*\*?|\*\/?|\/\/)/gm, ''))
    else if (/^['`](?:\S+\s+){3}/.test(text)) parts.push(text)
  }
  return parts.join('\n')
}

function proseOf(file: string): string {
  const text = readFileSync(join(root, file), 'utf8')
  // Code and quotations on a page are not its prose.
  return file.endsWith('.md') ? text.replace(/^```[\s\S]*?^```|"[^"\n]*"/gm, '') : proseOfSource(text)
}

function moduleOf(file: string): string {
  return dirname(file) === '.' ? file : dirname(file)
}

describe('plain English', () => {
  it('is used in comments, messages, test titles and pages', () => {
    const files = globSync(['{src,tests,scripts,bench}/**/*.ts', '{docs,bench}/**/*.md', '*.md'], { cwd: root })
    const failures: string[][] = []
    for (const [name, filesOfModule] of Map.groupBy(files.toSorted(), moduleOf)) {
      let wordCount = 0
      const found: string[] = []
      for (const file of filesOfModule) {
        const prose = proseOf(file)
        wordCount += prose.match(/[\p{L}’']+/gu)?.length ?? 0
        for (const { 0: text, index } of prose.matchAll(mark)) {
          const around = prose.slice(Math.max(0, index - 40), index + text.length + 40).replace(/\s+/g, ' ')
          found.push(`  ${file}: …${around}…`)
        }
      }
      const allowed = Math.max(marksMin, Math.floor((wordCount * marksPerThousandMax) / 1000))
      if (found.length > allowed)
        failures.push([`${name}: ${found.length} in ${wordCount} words, ${allowed} allowed`, ...found])
    }
    // The counts first: the runner cuts a long message.
    const report = [...failures.map(([counts]) => counts), ...failures.flat()].join('\n')
    assert.equal(failures.length, 0, `rewrite sentences until fewer of these phrases are left\n${report}`)
  })
})
