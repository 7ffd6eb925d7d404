import assert from 'node:assert/strict'
import { existsSync, globSync, readFileSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, it } from 'node:test'

// When headings are renumbered or files renamed, the links to them have to follow.

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
