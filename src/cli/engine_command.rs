//! How the command line names a UCI engine: `PROGRAM ARGUMENTS|Option=value|…`, with quotes as in a shell.

use std::path::{Path, is_separator};

use crate::pipeline::uci::EngineSpec;

/// Parses an engine; the error says what is wrong with the text.
pub fn parse(text: &str) -> Result<EngineSpec, String> {
    let mut parts = text.split('|');
    let command = parts.next().unwrap_or_default();
    // Where it separates folders it escapes nothing.
    let command = if is_separator('\\') { command.replace('\\', "\\\\") } else { command.to_owned() };
    let words = shlex::split(&command).ok_or("a quote is not closed, or the command ends with a backslash")?;
    let Some((program, arguments)) = words.split_first().filter(|(program, _)| !program.is_empty()) else {
        return Err("it names no program; write PROGRAM, PROGRAM ARGUMENTS or PROGRAM|Option=value".into());
    };
    let options = parts.map(EngineSpec::parse_option).collect::<Result<_, _>>()?;
    Ok(EngineSpec { arguments: arguments.to_vec(), options, ..EngineSpec::new(program) })
}

/// The name of an engine's program, without its folder.
pub fn program_name(engine: &EngineSpec) -> String {
    let path: &Path = &engine.path;
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_have_arguments_and_options() {
        type Parts<'a> = (&'a str, &'a [&'a str], &'a [(&'a str, &'a str)]);
        let check = |text: &str, expected: Result<Parts, &str>| {
            let found = parse(text);
            let found = found.as_ref().map_err(String::as_str).map(|engine| {
                let options: Vec<_> = engine.options.iter().map(|(name, value)| (&name[..], &value[..])).collect();
                let arguments: Vec<_> = engine.arguments.iter().map(String::as_str).collect();
                (engine.path.to_str().expect("UTF-8"), arguments, options)
            });
            let expected = expected.map(|(path, arguments, options)| (path, arguments.to_vec(), options.to_vec()));
            match (found, expected) {
                (Err(found), Err(expected)) => assert!(found.contains(expected), "{text}: {found}"),
                (found, expected) => assert_eq!(found, expected, "{text}"),
            }
        };
        check("stockfish", Ok(("stockfish", &[], &[])));
        check("fsbench uci --net mine", Ok(("fsbench", &["uci", "--net", "mine"], &[])));
        check(
            "fsbench uci --net 'my net'|Hash Mode=x",
            Ok(("fsbench", &["uci", "--net", "my net"], &[("Hash Mode", "x")])),
        );
        check("'/opt/my engines/sf'|A=b c|B", Ok(("/opt/my engines/sf", &[], &[("A", "b c"), ("B", "")])));
        check(" ./sf ", Ok(("./sf", &[], &[])));
        check("", Err("names no program"));
        check("''", Err("names no program"));
        check("|A=b", Err("names no program"));
        check("sf 'x", Err("a quote is not closed"));
        check("sf|=3", Err("give an option as Name=Value"));
        check("sf|Threads=3", Err("searches run on one thread"));
    }
}
