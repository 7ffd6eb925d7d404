import assert from 'node:assert/strict'
import { existsSync, globSync, readFileSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, it } from 'node:test'

// When headings are renumbered or files renamed, links and names have to follow.

const pages = globSync('{*.md,{docs,bench,tests,src,scripts}/**/*.md}')

/** The text outside fenced code. */
function proseOf(page: string): string {
  return readFileSync(page, 'utf8').replace(/^```.*?^```/gms, '')
}

/** The anchors that GitHub gives the headings of a page; the second of two equal ones gets `-1`. */
function anchorsOf(page: string): Set<string> {
  const anchors = new Set<string>()
  for (const [, heading] of proseOf(page).matchAll(/^#{1,6} +(.+?) *$/gm)) {
    const slug = heading!
      .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\p{M}\p{Pc} -]/gu, '')
      .replaceAll(' ', '-')
    let anchor = slug
    for (let count = 1; anchors.has(anchor); count++) anchor = `${slug}-${count}`
    anchors.add(anchor)
  }
  return anchors
}

/** What is wrong with a relative link of a page; null when it is right. */
function problemOf(page: string, link: string): string | null {
  const [path = '', anchor = ''] = link.split('#', 2)
  const target = path === '' ? page : join(dirname(page), decodeURIComponent(path))
  if (!existsSync(target)) return `${page}: ${link} is not there`
  if (anchor === '' || !target.endsWith('.md') || statSync(target).isDirectory()) return null
  return anchorsOf(target).has(anchor) ? null : `${page}: ${link} is no heading`
}

describe('links between documentation pages', () => {
  it('lead to files and headings that exist', () => {
    const problems: string[] = []
    let count = 0
    for (const page of pages) {
      const prose = proseOf(page).replace(/`[^`\n]*`/g, '')
      for (const [, link] of prose.matchAll(/\]\(([^()\s]+)(?: "[^"]*")?\)/g)) {
        if (/^[a-z]+:/i.test(link!)) continue
        count++
        const problem = problemOf(page, link!)
        if (problem !== null) problems.push(problem)
      }
    }
    assert.ok(pages.length >= 30 && count >= 100, 'this test’s way of looking finds them')
    assert.deepEqual(problems, [])
  })

  it('are reported as broken if the file or the heading is missing', () => {
    assert.equal(problemOf('README.md', 'docs/wire/errors.md#private-api'), null)
    assert.equal(problemOf('README.md', '#create-a-flag'), null)
    assert.match(problemOf('README.md', 'docs/wire/errors.md#nothing')!, /no heading/)
    assert.match(problemOf('README.md', 'docs/nothing.md')!, /not there/)
  })
})

const sources = globSync('{{bench,bin,scripts,src,tests,web/src}/**/,web/}*.{ts,tsx,js,mjs}')

/** All ways to name a file: its path, and each end of it, such as `kit/endpoint.ts`. */
const fileNames = new Set(
  [...sources, ...globSync('*.ts')].flatMap(path => {
    const parts = path.split('/')
    return parts.map((_, index) => parts.slice(index).join('/'))
  }),
)

/** The files of the project that a text names and that do not exist. */
function findMissingFiles(text: string): string[] {
  const named = text.matchAll(/(?<![\w./$}#@-])(?:[\w-]+\/)*[\w-][\w.-]*\.(?:ts|mjs)\b/g)
  return [...named].map(([name]) => name).filter(name => !fileNames.has(name))
}

function readComments(source: string): string {
  const comments = readFileSync(source, 'utf8').matchAll(/\/\*.*?\*\/|(?<![:\w'"`])\/\/[^\n]*/gs)
  return [...comments].map(([comment]) => comment).join('\n')
}

describe('names of files in documentation and comments', () => {
  it('are names of files that exist', () => {
    const texts = [
      ...pages.map(page => ({ path: page, text: readFileSync(page, 'utf8') })),
      ...sources.map(source => ({ path: source, text: readComments(source) })),
    ]
    const missing = texts.flatMap(({ path, text }) => findMissingFiles(text).map(name => `${path}: ${name}`))
    assert.ok(sources.length >= 1000, 'this test’s way of looking finds them')
    assert.deepEqual(missing, [])
  })

  it('are reported if no file has that name', () => {
    assert.deepEqual(findMissingFiles('`tidy/links.test.ts`, links.test.ts (tests/tidy/links.test.ts)'), [])
    assert.deepEqual(findMissingFiles('see `tidy/nothing.ts` and nothing.test.ts'), [
      'tidy/nothing.ts',
      'nothing.test.ts',
    ])
  })
})
