import { type ReactNode, useEffect } from 'react'
import { Icon } from '../../components/icon.tsx'
import css from './entry-form.module.css'

export interface EntryFormProps {
  readonly title: string
  readonly children: ReactNode
  readonly onSubmit?: () => void
}

/** The page of who is not signed in yet: one form in the middle. */
export function EntryForm({ title, children, onSubmit }: EntryFormProps) {
  useEffect(() => {
    document.title = `${title} · Pennon`
  }, [title])
  return (
    <main className={css.entry}>
      <form
        className={css.form}
        noValidate
        onSubmit={event => {
          event.preventDefault()
          onSubmit?.()
        }}
      >
        <div className={css.brand}>
          <Icon name="flag" size={20} />
          Pennon
        </div>
        <h1>{title}</h1>
        {children}
      </form>
    </main>
  )
}
