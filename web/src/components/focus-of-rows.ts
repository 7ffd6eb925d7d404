import { type FocusEvent, useEffect, useRef } from 'react'

/**
 * Where the focus goes when the row that had it is removed: to the row in its place, else to the heading of the list.
 * @param ids of the rows, in the order in which they are shown.
 * @returns the properties of the list.
 */
export function useFocusOfRows(ids: readonly string[]) {
  const list = useRef<HTMLUListElement>(null)
  const focused = useRef<{ id: string; place: number }>(null)
  // At every rendering: a dialog over the removed row keeps the focus until it is closed.
  useEffect(() => {
    if (focused.current === null || ids.includes(focused.current.id) || document.activeElement !== document.body) return
    const row = list.current?.children[Math.min(focused.current.place, ids.length - 1)]
    const button = [...(row?.querySelectorAll('button') ?? [])].at(-1)
    focused.current = null
    const heading = list.current?.closest('section, main')?.querySelector<HTMLElement>('h1, h2')
    ;(button ?? heading)?.focus()
  })
  return {
    ref: list,
    onFocus: ({ target }: FocusEvent) => {
      // What a row opens is elsewhere in the page.
      const place = [...(list.current?.children ?? [])].findIndex(row => row.contains(target))
      const id = ids[place]
      if (id !== undefined) focused.current = { id, place }
    },
  }
}
