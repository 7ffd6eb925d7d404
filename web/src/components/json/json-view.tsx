import { useVirtualizer } from '@tanstack/react-virtual'
import { type KeyboardEvent, useMemo, useRef, useState } from 'react'
import type { JsonValue } from '#core/json.ts'
import { Icon } from '../icon.tsx'
import { CopyButton } from '../overlays/copy-button.tsx'
import { formatCounted } from '../text/format-number.ts'
import { Outside } from '../text/outside.tsx'
import css from './json.module.css'
import { findOpenAtFirst, findParentLine, type JsonContainer, type JsonLine, listJsonLines } from './json-lines.ts'

export interface JsonViewProps {
  readonly label: string
  /** Parsed by `parseJson`, which keeps number literals. */
  readonly value: JsonValue
  /** The text that is copied. */
  readonly source?: string
}

const linesAtFirst = 60
/** Deeper levels are not indented further: their level is read out, and their parents are above. */
const indentMax = 24

/** A value as a tree that opens and closes. Source of its keys: WAI-ARIA Authoring Practices, tree view pattern. */
export function JsonView({ label, value, source }: JsonViewProps) {
  const [open, setOpen] = useState(() => findOpenAtFirst(value, linesAtFirst))
  const [active, setActive] = useState(0)
  const scroller = useRef<HTMLDivElement>(null)
  const lines = useMemo(() => listJsonLines(value, container => open.has(container)), [value, open])
  const activeAt = Math.min(active, lines.length - 1)
  const virtualizer = useVirtualizer({
    count: lines.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => 24,
    overscan: 10,
    rangeExtractor: ({ startIndex, endIndex, overscan, count }) => {
      const first = Math.max(0, startIndex - overscan)
      const last = Math.min(count - 1, endIndex + overscan)
      const seen = Array.from({ length: Math.max(0, last - first + 1) }, (_, offset) => first + offset)
      // The line that has the focus is kept in the page.
      if (activeAt < first) return [activeAt, ...seen]
      return activeAt > last && activeAt < count ? [...seen, activeAt] : seen
    },
  })

  const toggle = (container: JsonContainer) => {
    const next = new Set(open)
    if (!next.delete(container)) next.add(container)
    setOpen(next)
  }
  const focusLine = (at: number) => {
    const next = Math.max(0, Math.min(lines.length - 1, at))
    setActive(next)
    virtualizer.scrollToIndex(next)
    requestAnimationFrame(() => scroller.current?.querySelector<HTMLElement>('[tabindex="0"]')?.focus())
  }
  const onKeyDown = (event: KeyboardEvent) => {
    const line = lines[activeAt]!
    const { container, isOpen } = line
    switch (event.key) {
      case 'ArrowDown':
        focusLine(activeAt + 1)
        break
      case 'ArrowUp':
        focusLine(activeAt - 1)
        break
      case 'Home':
        focusLine(0)
        break
      case 'End':
        focusLine(lines.length - 1)
        break
      case 'ArrowRight':
        if (container !== null && !isOpen) toggle(container)
        else if (isOpen) focusLine(activeAt + 1)
        break
      case 'ArrowLeft':
        if (container !== null && isOpen) toggle(container)
        else focusLine(findParentLine(lines, activeAt))
        break
      case 'Enter':
      case ' ':
        if (container !== null) toggle(container)
        break
      default:
        return
    }
    event.preventDefault()
  }

  return (
    <div>
      <div className={css.treeHead}>
        <h3>{label}</h3>
        <CopyButton label={`Copy ${label.toLowerCase()}`} text={() => source ?? JSON.stringify(value, null, 2)} />
      </div>
      <div ref={scroller} className={css.tree}>
        <div
          role="tree"
          aria-label={label}
          className={css.treeSpace}
          style={{ height: virtualizer.getTotalSize() }}
          onKeyDown={onKeyDown}
        >
          {virtualizer.getVirtualItems().map(({ index, start }) => {
            const line = lines[index]!
            return (
              <div
                key={index}
                role="treeitem"
                aria-level={line.level}
                aria-posinset={line.place}
                aria-setsize={line.siblingCount}
                aria-expanded={line.container === null ? undefined : line.isOpen}
                aria-selected={index === activeAt}
                tabIndex={index === activeAt ? 0 : -1}
                className={css.treeLine}
                style={
                  {
                    transform: `translateY(${start}px)`,
                    '--indent': Math.min(line.level - 1, indentMax),
                  } as React.CSSProperties
                }
                onClick={() => {
                  setActive(index)
                  if (line.container !== null) toggle(line.container)
                }}
              >
                <Line line={line} />
              </div>
            )
          })}
        </div>
      </div>
    </div>
  )
}

function Line({ line }: { line: JsonLine }) {
  const { key, kind, text, container } = line
  return (
    <>
      <span className={css.treeMark}>{container !== null && <Icon name="chevron-right" size={14} />}</span>
      {key !== null && (
        <span className={css.treeKey}>{typeof key === 'number' ? key : <Outside text={key} charsMax={60} />}</span>
      )}
      {kind === 'string' && <span className={css.string}>"{text !== '' && <Outside text={text} />}"</span>}
      {(kind === 'number' || kind === 'boolean' || kind === 'null') && <span className={css.literal}>{text}</span>}
      {kind === 'list' && (
        <span className={css.none}>{formatCounted(Number(text), { one: 'item', other: 'items' })}</span>
      )}
      {kind === 'object' && (
        <span className={css.none}>{formatCounted(Number(text), { one: 'property', other: 'properties' })}</span>
      )}
    </>
  )
}
