import { type ReactNode, useEffect, useRef } from 'react'
import { formatOutsideText } from '../components/text/outside-text.ts'
import css from './shell.module.css'

export interface PageProps {
  /** The heading, and the title of the tab. */
  readonly title: string
  readonly children: ReactNode
  /** Buttons beside the heading. */
  readonly actions?: ReactNode
  readonly isForm?: boolean
}

/** A screen's content below its heading, where reading begins after a change of the address. */
export function Page({ title, children, actions, isForm = false }: PageProps) {
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    document.title = `${formatOutsideText(title)} · Pennon`
  }, [title])
  useEffect(() => {
    // Something on the screen that has the focus by itself, such as the first field of a form, keeps it.
    if (document.activeElement?.closest('main') == null) heading.current?.focus()
  }, [])
  return (
    <div className={isForm ? css.form : css.page}>
      <div className={css.pageHead}>
        <h1 ref={heading} tabIndex={-1}>
          {formatOutsideText(title)}
        </h1>
        {actions}
      </div>
      {children}
    </div>
  )
}
