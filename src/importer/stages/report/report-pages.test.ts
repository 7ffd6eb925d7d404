import assert from 'node:assert/strict'
import { it } from 'node:test'
import { renderHtmlSections } from './report-html.ts'
import type { Section } from './report-sections.ts'

it('foreign text in a report cannot reverse the direction of lines or hide characters', () => {
  const hostile = 'a\u001b]0;title\u0007b\u009b31mc\u202ed\u2066e'
  const emoji = '👩\u200d🚀'
  const section: Section = {
    title: 'Events',
    lines: [`The job ${hostile} has the same days.`],
    tables: [
      {
        caption: 'Names',
        columns: [{ title: 'Event' }, { title: 'Count', isNumber: true }],
        rows: [
          [hostile, '1'],
          ['two\nlines', '2'],
          [emoji, '3'],
        ],
      },
    ],
  }
  const about = [`Files: ${hostile}`]
  const html = renderHtmlSections('Rehearsal', { about, sections: [section], days: [] })
  assert.doesNotMatch(html, /(?![\n\t])[\p{Cc}\u202a-\u202e\u2066-\u2069]/u)
  assert.equal(html.split('u001b').length, 4)
  assert.ok(html.includes(emoji))
  assert.match(html, />a\\u001b\]0;title\\u0007b\\u009b31mc\\u202ed\\u2066e</)
})
